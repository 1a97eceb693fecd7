#!/bin/bash
# peak-disk.sh start PLACE IOPS: a block device that is held to so many reads a second, for `etude peak`.
# peak-disk.sh fio PLACE RATE SECONDS SEED: fio on it, that many random reads a second in all.
#
# The device is a loop device on a file in PLACE, the limit that of a cgroup (blkio of version 1, or io of version 2)
# which fio joins. Without root it is the file itself, and the peak that of the disk below. It runs until it is ended.
set -eu
readonly THREADS=16

main() {
    local what=$1
    place=$2
    shift 2
    case $what in
        start) start "$1" ;;
        fio) run_fio "$@" ;;
        *) fail "unknown: $what" ;;
    esac
}

fail() {
    echo "peak-disk.sh: $1" >&2
    exit 1
}

start() {
    take_down # what an earlier start left, if it was killed
    trap take_down EXIT
    trap 'exit 0' TERM INT HUP
    head -c 64M /dev/urandom >"$place/disk"
    if ((EUID == 0)); then
        losetup --find --show --direct-io=on "$place/disk" >"$place/loop"
        hold "$(cat "$place/loop")" "$1"
    fi
    touch "$place/up"
    sleep infinity &
    wait $!
}

hold() {
    local numbers cgroup
    numbers=$(lsblk --noheadings --output MAJ:MIN "$1" | tr -d ' ')
    if [[ -e /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device ]]; then
        cgroup=/sys/fs/cgroup/blkio/etude-peak-$$
        mkdir "$cgroup"
        echo "$cgroup" >"$place/cgroup"
        echo "$numbers $2" >"$cgroup/blkio.throttle.read_iops_device"
    elif grep -qw io /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then
        cgroup=/sys/fs/cgroup/etude-peak-$$
        echo +io >/sys/fs/cgroup/cgroup.subtree_control
        mkdir "$cgroup"
        echo "$cgroup" >"$place/cgroup"
        echo "$numbers riops=$2" >"$cgroup/io.max"
    else
        echo 'peak-disk.sh: no cgroup can hold the device: its own peak is measured' >&2
    fi
}

take_down() {
    rm -f "$place/up"
    if [[ -e $place/loop ]]; then losetup --detach "$(cat "$place/loop")" 2>/dev/null || true; fi
    if [[ -e $place/cgroup ]]; then rmdir "$(cat "$place/cgroup")" 2>/dev/null || true; fi
    rm -f "$place/loop" "$place/cgroup" "$place/disk"
}

run_fio() {
    local rate=$1 seconds=$2 seed=$3 thread own device=$place/disk jobs=()
    command -v fio >/dev/null || fail 'no program fio: install the Debian package fio'
    if [[ -e $place/cgroup ]]; then echo $$ >"$(cat "$place/cgroup")/cgroup.procs"; fi
    if [[ -e $place/loop ]]; then device=$(cat "$place/loop"); fi
    # rate_iops is a whole number for each thread: some have one more than the others. Each has a seed of its own, or
    # all would read at the same instants.
    for ((thread = 0; thread < THREADS; thread++)); do
        own=$((rate / THREADS + (thread < rate % THREADS)))
        if ((own > 0)); then jobs+=("--name=$thread" "--rate_iops=$own" "--randseed=$((seed * THREADS + thread))"); fi
    done
    exec fio --filename="$device" --rw=randread --bs=4k --ioengine=psync --direct=1 --size=64m --thread=1 \
        --group_reporting=1 --rate_process=poisson --time_based=1 --runtime="$seconds" \
        --lat_percentiles=1 --status-interval=1 --output-format=json+ "${jobs[@]}"
}

main "$@"
