# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # the scripts that source this use its variables
# Running programs so that a signal to the script is handled at once, and building. Sourced.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# The folder and the flags of the build for checks. There is one set of flags, so that everything is compiled once.
# SwiftPM compiles dependencies with their warnings suppressed and without -warnings-as-errors. Debug information is left
# out, because it takes time and memory. A compiler of whole modules takes a sixth less time than one of batches of
# files, which reads the module for each batch.
scratch=.build-check
flags=(
    --scratch-path "$scratch" --explicit-target-dependency-import-check error
    -Xswiftc -warnings-as-errors -Xswiftc -gnone -Xcc -g0 -Xcxx -g0
    -Xswiftc -whole-module-optimization -Xswiftc -disable-batch-mode -Xswiftc -num-threads -Xswiftc 2
)

attended="" timer="" starting="" earlier="" build_log=""

# Around the start of a background process: has `$!` kept in a variable, also by a trap that runs before it could be.
start() { # VARIABLE
    starting=$1 earlier=${!:-}
}
started() {
    if [[ -n $starting && ${!:-} != "$earlier" ]]; then printf -v "$starting" %s "$!"; fi
    starting=""
}

# Runs a command in a process group of its own and waits for it. A signal to the script ends the wait (bash holds traps
# back while a foreground program runs), and `abandon` then ends it and all that it has started.
attend() {
    local code=0
    set -m
    start attended
    "$@" <&0 &
    started
    set +m
    wait "$attended" || code=$?
    attended=""
    return "$code"
}

# Like attend, for so many seconds at the most: then it ends the command and all that it has started, and the status is
# 124. `timeout` ends only the command itself.
attend_within() { # SECONDS COMMAND...
    local ended="" code=0 seconds=$1
    shift
    set -m
    start attended
    "$@" <&0 &
    started
    set +m
    start timer
    sleep "$seconds" &
    started
    wait -n -p ended "$attended" "$timer" || code=$?
    if [[ $ended == "$timer" ]]; then code=124; else attended=""; fi
    abandon
    return "$code"
}

# Processes and all that they have started and what these have: a process group is not enough, because SwiftPM puts its
# children into groups of their own.
family() { # PROCESS...
    ps -e -o pid=,ppid= | awk -v roots="$*" '
        BEGIN { count = split(roots, list); for (i = 1; i <= count; i++) root[list[i]] }
        { parent[$1] = $2 }
        END {
            for (pid in parent) {
                for (p = pid; p in parent && !(p in root); p = parent[p]);
                if (p in parent) print pid
            }
        }'
}

# Ends the command of `attend` or `attend_within` with all its descendants, and removes the log of a build; for
# clean-up. It stops all of them first, so that none starts another one meanwhile, and after 5 s it kills the rest. The
# list keeps every process that was ever on it. A shell whose children stop first may end at once, and then it is no
# parent in the next list.
abandon() {
    local known=0 pid tries=0
    local -A stopped=()
    started
    [[ -z $build_log ]] || rm -f "$build_log"
    if [[ -n $timer ]]; then
        kill "$timer" 2>/dev/null || true
        wait "$timer" 2>/dev/null || true
        timer=""
    fi
    [[ -n $attended ]] || return 0
    while
        for pid in $(family "$attended" "${!stopped[@]}"); do stopped[$pid]=""; done
        ((${#stopped[@]} > known))
    do
        known=${#stopped[@]}
        kill -STOP "${!stopped[@]}" 2>/dev/null || true
    done
    if ((known)); then
        kill -TERM "${!stopped[@]}" 2>/dev/null || true
        kill -CONT "${!stopped[@]}" 2>/dev/null || true
        while kill -0 "${!stopped[@]}" 2>/dev/null && ((++tries <= 50)); do sleep 0.1; done
        kill -KILL "${!stopped[@]}" 2>/dev/null || true
    fi
    wait "$attended" 2>/dev/null || true
    attended=""
}

# The command of a release build: builds it when it is not up to date. Its path is in $baton afterwards.
build_release() {
    local began
    build_log=$(mktemp)
    began=$(moment)
    if ! attend release_build "$build_log"; then
        cat "$build_log" >&2
        fail "the build failed; what the compiler said is above."
    fi
    rm -f "$build_log"
    build_log=""
    baton=$(swift_as_owner build --package-path "$top" -c release --product baton --show-bin-path)/baton
    [[ -x $baton ]] || fail "the build made no $baton"
    say "  Built in $(since "$began"): $baton"
}
release_build() { swift_as_owner build --package-path "$top" -c release --product baton >"$1" 2>&1; }

# Under sudo the build still belongs to the user, so that the next build without sudo can write to it.
swift_as_owner() {
    if ((EUID == 0)) && [[ -n ${SUDO_USER:-} && $SUDO_USER != root ]]; then
        runuser -u "$SUDO_USER" -- env PATH="$PATH" swift "$@"
    else
        swift "$@"
    fi
}
