# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How the scripts speak: sentences for people, sizes, times. Sourced.

if [[ -t 1 && ${TERM:-dumb} != dumb && -z ${NO_COLOR:-} ]]; then
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
else
    bold="" dim="" plain=""
fi

say() { printf '%s\n' "$*"; }

# A heading of one step.
head_line() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# A command that a user would type, with the host's name as the prompt.
typed() { printf '  %s%s$%s %s\n' "$bold" "$1" "$plain" "${*:2}"; }

# Output of a program, set off from our own words.
quote() { sed "s/^/  $dim|$plain /"; }

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# A moment, in microseconds since 1970.
moment() { printf '%s\n' "${EPOCHREALTIME//[.,]/}"; }

# The time since a moment, as "12.3 s" or "3 min 20 s".
since() {
    local micros=$(($(moment) - $1))
    if ((micros < 100000000)); then
        printf '%d.%d s\n' $((micros / 1000000)) $((micros / 100000 % 10))
    else
        printf '%d min %d s\n' $((micros / 60000000)) $((micros / 1000000 % 60))
    fi
}

# "512M", "1G", "1GiB" or plain bytes -> bytes. Units are powers of 1024.
bytes_of() {
    local text=${1^^} unit=1
    [[ $text =~ ^([1-9][0-9]{0,14})(K|M|G|T)?(I?B)?$ ]] || return 1
    case ${BASH_REMATCH[2]} in
        K) unit=1024 ;;
        M) unit=$((1024 ** 2)) ;;
        G) unit=$((1024 ** 3)) ;;
        T) unit=$((1024 ** 4)) ;;
    esac
    echo $((BASH_REMATCH[1] * unit))
}

# bytes -> "1.0 GiB"
size_of() {
    local units=(B KiB MiB GiB TiB) value=$1 rest=0 index=0
    while ((value >= 1024 && index < 4)); do
        rest=$((value % 1024 * 10 / 1024)) value=$((value / 1024)) index=$((index + 1))
    done
    if ((index == 0)); then echo "$value B"; else echo "$value.$rest ${units[index]}"; fi
}
