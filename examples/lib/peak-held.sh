#!/bin/bash
# peak-held.sh GROUP PERCENT COMMAND…: a command held to PERCENT of a CPU, in periods of 10 ms, ahead of other users.
#
# So a server is busy with a known share of a machine that is shared, and its peak does not follow what others do.
# PERCENT 0: not held. Else it needs root. GROUP is a control group for CPU time, made where there is none and removed
# once nothing runs in it; commands of one group share its part.
set -eu
readonly PERIOD_US=10000 WEIGHT=8
group=$1 percent=$2
shift 2
((percent)) || exec "$@"
if ((EUID != 0)); then
    echo 'peak-held.sh: only root can hold a command to a share of a CPU: use a percentage of 0' >&2
    exit 1
fi
if [[ -e /sys/fs/cgroup/cpu/cgroup.procs ]]; then # version 1
    top=/sys/fs/cgroup/cpu/etude-servers
    mkdir -p "$top/$group"
    echo $((1024 * WEIGHT)) >"$top/cpu.shares"
    echo $PERIOD_US >"$top/$group/cpu.cfs_period_us"
    echo $((PERIOD_US * percent / 100)) >"$top/$group/cpu.cfs_quota_us"
else
    top=/sys/fs/cgroup/etude-servers
    mkdir -p "$top"
    echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
    echo +cpu >"$top/cgroup.subtree_control"
    mkdir -p "$top/$group"
    echo $((100 * WEIGHT)) >"$top/cpu.weight"
    echo "$((PERIOD_US * percent / 100)) $PERIOD_US" >"$top/$group/cpu.max"
fi
(
    echo "$BASHPID" >"$top/$group/cgroup.procs"
    exec "$@"
) &
command=$!
trap 'kill "$command" 2>/dev/null || true' TERM INT HUP
status=0
wait "$command" || status=$?
while kill -0 "$command" 2>/dev/null; do # a signal ended the wait, not the command
    status=0
    wait "$command" || status=$?
done
rmdir "$top/$group" "$top" 2>/dev/null || true
exit "$status"
