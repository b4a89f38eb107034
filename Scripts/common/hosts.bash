# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Two or more hosts to show and measure Baton on: lab hosts where the machine allows them, else homes on this host.
# Sourced, after say.bash and build.bash.

lab=$top/Scripts/lab
lab_name=""        # of a lab that is up
homes=""           # the folder of homes that are up
hosts_bus=""       # address of a D-Bus that was started for homes
declare -a hosts_daemons=()

# Real disk, not memory: /tmp is a tmpfs on many systems, and documents are large.
hosts_base() { echo "${TMPDIR:-/var/tmp}"; }

# Why lab hosts are not possible here; nothing when they are.
lab_refusal() { "$lab" check 2>&1 || true; }

# Whether a user without root can make lab hosts here, in a user namespace.
may_enter() { "$lab" enter "$lab" check >/dev/null 2>&1; }

hosts_up_lab() { # COUNT
    export BATON_LAB_FOLDER
    BATON_LAB_FOLDER=$(hosts_base)
    lab_name=$(basename "$0")-$$
    # With an owner the lab goes down even when this script is killed.
    attend "$lab" --name "$lab_name" up --hosts "$1" --owner $$
}

hosts_up_homes() { # COUNT
    local host
    homes=$(mktemp -d "$(hosts_base)/baton-$(basename "$0").XXXXXX")
    for ((host = 1; host <= $1; host++)); do
        mkdir -m 0700 "$homes/$host" "$homes/$host/home" "$homes/$host/baton"
    done
    avahi_answers || hosts_start_avahi
}

# Ends what runs on the hosts and removes all they have.
hosts_down() {
    local pid
    if [[ -n $lab_name ]]; then
        "$lab" --name "$lab_name" down || true
        lab_name=""
    fi
    if [[ -n $homes ]]; then
        for pid in "${hosts_daemons[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
        for pid in "${hosts_daemons[@]}"; do wait "$pid" 2>/dev/null || true; done
        rm -rf "$homes"
        homes=""
    fi
}

# Becomes a program on a host; for `attend`, `&` and subshells.
on_exec() { # HOST COMMAND...
    local host=$1
    shift
    [[ -z $lab_name ]] || exec "$lab" --name "$lab_name" run "$host" "$@"
    [[ -z $hosts_bus ]] || export DBUS_SYSTEM_BUS_ADDRESS=$hosts_bus
    exec env HOME="$homes/$host/home" BATON_HOME="$homes/$host/baton" "$@"
}

# Runs a program on a host.
on() { (on_exec "$@"); }

home_of() { # HOST -> its home folder
    if [[ -n $lab_name ]]; then echo "$BATON_LAB_FOLDER/baton-lab-$lab_name/hosts/$1/home"; else echo "$homes/$1/home"; fi
}

# --- Avahi, where hosts are only homes -------------------------------------------------------------------------------

avahi_answers() {
    DBUS_SYSTEM_BUS_ADDRESS=${hosts_bus:-${DBUS_SYSTEM_BUS_ADDRESS:-unix:path=/run/dbus/system_bus_socket}} \
        timeout 5 dbus-send --system --print-reply --dest=org.freedesktop.Avahi / \
        org.freedesktop.Avahi.Server.GetState >/dev/null 2>&1
}

# Root starts a D-Bus and an Avahi that only these homes use.
hosts_start_avahi() {
    local tries=0
    ((EUID == 0)) ||
        fail "no Avahi answers on this machine, and without it no node finds another. Start it" \
            "(sudo systemctl start dbus avahi-daemon, or sudo service dbus start; sudo service avahi-daemon start)" \
            "and run this again, or run this as root."
    say "  No Avahi answers on this machine; starting a D-Bus and an Avahi that only these two nodes use."
    cat >"$homes/bus.conf" <<CONF
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=$homes/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
CONF
    printf '[server]\nuse-ipv4=yes\nuse-ipv6=yes\n[wide-area]\nenable-wide-area=no\n' >"$homes/avahi.conf"
    dbus-daemon --config-file="$homes/bus.conf" --nofork --nopidfile --nosyslog </dev/null >"$homes/bus.log" 2>&1 &
    hosts_daemons+=($!)
    hosts_bus=unix:path=$homes/bus
    until [[ -S $homes/bus ]]; do
        ((++tries <= 100)) || fail "dbus-daemon does not start: $(tail -n 1 "$homes/bus.log")"
        sleep 0.05
    done
    # Debian's avahi-daemon must not take the machine's own pid file; where no Avahi answers there is none to disturb.
    mkdir -p /run/avahi-daemon
    DBUS_SYSTEM_BUS_ADDRESS=$hosts_bus avahi-daemon -f "$homes/avahi.conf" --no-drop-root --no-chroot --no-rlimits \
        </dev/null >"$homes/avahi.log" 2>&1 &
    hosts_daemons+=($!)
    until avahi_answers; do
        ((++tries <= 200)) || fail "avahi-daemon does not start: $(tail -n 1 "$homes/avahi.log")"
        sleep 0.05
    done
}

# --- nodes -----------------------------------------------------------------------------------------------------------

declare -A node_pid=() node_log=()

# Starts a node and waits until it answers.
start_node() { # HOST LOGFILE
    local end=$((SECONDS + 20))
    node_log[$1]=$2
    on_exec "$1" "$baton" node </dev/null >"$2" 2>&1 &
    node_pid[$1]=$!
    until on "$1" "$baton" status --json >/dev/null 2>&1; do
        kill -0 "${node_pid[$1]}" 2>/dev/null || fail "the node on host $1 ended: $(tail -n 3 "$2")"
        ((SECONDS < end)) || fail "the node on host $1 does not answer: $(tail -n 3 "$2")"
        sleep 0.1
    done
}

# Stops nodes with SIGTERM, so that they withdraw their records.
stop_nodes() {
    local pid
    for pid in "${node_pid[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in "${node_pid[@]}"; do wait "$pid" 2>/dev/null || true; done
    node_pid=()
}
