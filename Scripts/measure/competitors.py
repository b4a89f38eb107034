# SPDX-License-Identifier: Apache-2.0

"""What Baton is measured against: nginx with curl over TLS 1.3, scp and rsync. Own configuration and keys, in the lab."""

import os
import shutil
import subprocess

from hosts import Host, Trouble, end, wait_until

HTTPS, SSH = 8443, 2222


def accepts(host: Host, port: int) -> bool:
    """Whether something listens there, looked at from inside the host."""
    probe = f"import socket; socket.create_connection(('{host.address}', {port}), 1)"
    return subprocess.run(host.command("python3", "-c", probe), capture_output=True).returncode == 0


class Nginx:
    """nginx on one host serves the host's home over TLS 1.3 alone; curl fetches."""

    def __init__(self, host: Host):
        self.host = host
        folder = f"{host.home}/nginx"
        os.makedirs(folder, exist_ok=True)
        self.certificate = f"{folder}/certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
            + ["-keyout", f"{folder}/key.pem", "-out", self.certificate, "-days", "2", "-subj", "/CN=origin"]
            + ["-addext", f"subjectAltName=IP:{host.address}"],
            check=True,
            capture_output=True,
        )
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(f"""
user root;
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {host.address}:{HTTPS} ssl;
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        ssl_certificate {self.certificate};
        ssl_certificate_key {folder}/key.pem;
        root {host.home};
    }}
}}
""")
        self.log = f"{folder}/said"
        with open(self.log, "wb") as log:
            self.process = host.spawn(
                "nginx", "-p", folder, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf", stdout=log, stderr=log
            )
        wait_until(lambda: self.process.poll() is not None or accepts(host, HTTPS), 10, "nginx does not start")
        if self.process.poll() is not None:
            with open(self.log) as said:
                raise Trouble(f"nginx ended: {said.read()[-300:]}")

    def fetch(self, name: str, destination: str) -> list[str]:
        """The command that fetches a file of the origin's home."""
        return ["curl", "-q", "--silent", "--show-error", "--fail", "--tlsv1.3", "--http1.1"] + [
            "--cacert", self.certificate, "-o", destination, f"https://{self.host.address}:{HTTPS}/{name}",
        ]  # fmt: skip

    def stop(self) -> None:
        end(self.process)


class SSHServer:
    """sshd on one host with keys of its own; scp, and rsync over ssh, copy with AES-128-GCM."""

    def __init__(self, host: Host):
        self.host = host
        folder = f"{host.home}/ssh"
        # Keys of a measurement before this one are not written over.
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        self.folder = folder
        for key in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{key}"], check=True, capture_output=True
            )
        with open(f"{folder}/host.pub") as public, open(f"{folder}/known", "w") as known:
            known.write(f"[{host.address}]:{SSH} {public.read()}")
        with open(f"{folder}/config", "w") as file:
            file.write(f"""
Port {SSH}
ListenAddress {host.address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile {folder}/pid
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Ciphers aes128-gcm@openssh.com
Subsystem sftp internal-sftp
""")
        self.log = f"{folder}/said"
        # sshd wants /run/sshd: a /run of its own, so that nothing is made in this machine's.
        start = 'mount -t tmpfs none /run && mkdir -m 0755 /run/sshd && exec "$(command -v sshd)" -D -e -f "$1"'
        with open(self.log, "wb") as log:
            self.process = host.spawn(
                "env", f"PATH={os.environ['PATH']}:/usr/sbin:/sbin",
                "unshare", "--mount", "sh", "-c", start, "sshd", f"{folder}/config", stdout=log, stderr=log,
            )  # fmt: skip
        wait_until(lambda: self.process.poll() is not None or accepts(host, SSH), 10, "sshd does not start")
        if self.process.poll() is not None:
            with open(self.log) as said:
                raise Trouble(f"sshd ended: {said.read()[-300:]}")

    @property
    def options(self) -> list[str]:
        return ["-F", "none", "-i", f"{self.folder}/user", "-o", f"UserKnownHostsFile={self.folder}/known"] + [
            "-o", "Ciphers=aes128-gcm@openssh.com", "-o", "BatchMode=yes",
        ]  # fmt: skip

    def fetch(self, name: str, destination: str) -> list[str]:
        """The command that fetches a file of the origin's home."""
        source = f"root@{self.host.address}:{self.host.home}/{name}"
        return ["scp", "-q", "-P", str(SSH), *self.options, source, destination]

    def synchronize(self, name: str, folder: str) -> list[str]:
        """The command that copies a folder of the origin's home into a folder."""
        shell = " ".join(["ssh", "-p", str(SSH), *self.options])
        return ["rsync", "-a", "-e", shell, f"root@{self.host.address}:{self.host.home}/{name}", f"{folder}/"]

    def stop(self) -> None:
        end(self.process)
