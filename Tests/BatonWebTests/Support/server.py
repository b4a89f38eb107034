# SPDX-License-Identifier: Apache-2.0

"""A web host of a test, over HTTPS on loopback: what it answers to a path stands in a file of the test.

usage: server.py CERTIFICATE KEY FOLDER ADDRESS [old] [PORT]

FOLDER/answers.json maps a path to {"status", "headers", "body" (base64), "mode"}; other paths get 404. Modes: "drip"
sends a byte each 50 ms, "silent" nothing, "headers" headers without end, "cut" half of the body. Each request appends
"HOST PATH" to FOLDER/requests. Its port stands in FOLDER/port; it ends with its standard input. "old" speaks TLS 1.1 at most.
Without a port the system chooses one.
"""
import base64
import http.server
import json
import os
import socket
import ssl
import sys
import threading
import time

certificate, key, folder, address = sys.argv[1:5]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with open(folder + "/requests", "a") as log:
            log.write(f"{self.headers.get('Host')} {self.path}\n")
        with open(folder + "/answers.json") as file:
            answer = json.load(file).get(self.path, {"status": 404})
        body = base64.b64decode(answer.get("body", ""))
        mode = answer.get("mode", "")
        try:
            if mode == "silent":
                time.sleep(60)
                return
            self.send_response(answer["status"])
            for name, value in answer.get("headers", {}).items():
                self.send_header(name, value)
            if mode == "headers":
                self.flush_headers()
                for number in range(100_000):
                    self.wfile.write(f"X-{number}: {'x' * 1000}\r\n".encode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if mode == "drip":
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.05)
            elif mode == "cut":
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
            else:
                self.wfile.write(body)
        except OSError:
            self.close_connection = True  # the client has had enough

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # a client that did not like the certificate


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
if "old" in sys.argv[5:]:
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
port = next((int(argument) for argument in sys.argv[5:] if argument.isdigit()), 0)
server = Server((address, port), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
# In one step: whoever waits for the file finds the whole of it.
with open(folder + "/port.new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(folder + "/port.new", folder + "/port")
sys.stdin.read()
