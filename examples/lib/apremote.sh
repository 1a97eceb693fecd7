#!/bin/bash
# apremote.sh CMD ARG…: answers, on the machine under test, what ap_remote of another asks by ssh.
#
# Built in is `cputime NAME`: the CPU seconds that programs and kernel threads of that name have used. Hooks
# `apremote` add commands (docs/howto/hooks.md).
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"

# Of /proc/PID/stat the name stands in brackets and may hold blanks; utime and stime are the 12th and 13th
# behind it.
cputime() {
    local ticks=0 file line fields
    for file in /proc/[0-9]*/stat; do
        { IFS= read -r line <"$file"; } 2>/dev/null || continue
        [[ $line == *"($1)"* ]] || continue
        read -r -a fields <<<"${line##*)}"
        ((ticks += fields[11] + fields[12]))
    done
    awk -v t="$ticks" -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.2f\n", t / hz }'
}

(($# > 0)) || ap_fail 'expected a command: apremote.sh CMD ARG…'
if [[ $1 == cputime && $# == 2 ]]; then
    cputime "$2"
    exit
fi
status=0
ap_hook apremote "$@" || status=$?
((status != AP_DECLINED)) || ap_fail "no hook knows the command $1"
exit "$status"
