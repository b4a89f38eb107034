#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a user's service manager, `systemd --user`, where there is none: with a /run and a part of the cgroups of its
# own. It serves XDG_RUNTIME_DIR, says "ready" when it answers, and ends with standard input, with all that it has
# started and without a trace. Where it cannot run it says why and ends with 3. Needs root, as lab hosts do.
set -u -o pipefail
export LC_ALL=C

refuse() { echo "there is no user's service manager here: $*"; exit 3; }

if [[ ${1:-} != alone ]]; then
    ((EUID == 0)) || refuse "only root makes one"
    exec unshare --mount bash "$0" alone
    refuse "unshare is not installed"
fi

for manager in {/usr,}/lib/systemd/systemd ""; do [[ -x $manager ]] && break; done
[[ -n $manager ]] && command -v systemctl systemd-run >/dev/null || refuse "systemd is not installed"
# A manager for a user wants to see that the machine was booted with systemd.
mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/cgroups || refuse "no mounts"
mount -t cgroup2 none /run/cgroups || refuse "no cgroups of version 2"
group=$(mktemp -d /run/cgroups/baton-test-XXXXXX) && [[ -e $group/cgroup.kill ]] || refuse "no cgroups that can be ended (Linux 5.14)"

clean() {
    trap '' INT TERM HUP
    echo 1 >"$group/cgroup.kill"
    [[ -z ${input:-} ]] || kill "$input" 2>/dev/null
    local tries
    for ((tries = 0; tries < 500; tries++)); do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
        [[ -d $group ]] || return
        sleep 0.01
    done
}
trap clean EXIT
trap 'exit 0' INT TERM HUP

(
    echo "$BASHPID" >"$group/cgroup.procs" && exec unshare --mount --cgroup bash -c '
        mount -t cgroup2 none /sys/fs/cgroup && exec env SYSTEMD_LOG_TARGET=console "$0" --user --unit=basic.target' "$manager"
) </dev/null >&2 &
manager=$! tries=0
until systemctl --user show --property=Version --value 2>/dev/null | grep -q '[0-9]'; do
    ((++tries < 200)) && kill -0 "$manager" 2>/dev/null || refuse "it does not answer"
    sleep 0.05
done
echo ready
exec {standard_input}<&0
cat <&"$standard_input" >/dev/null &
input=$!
wait -n "$input" "$manager"
