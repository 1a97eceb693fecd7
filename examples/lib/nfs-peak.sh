#!/bin/bash
# nfs-peak.sh start PLACE THREADS IOPS MEMORY: an NFS server (nfs-server.sh) on a disk of known speed, for `etude peak`.
# nfs-peak.sh ready PLACE: whether it serves.
# nfs-peak.sh load PLACE IOPS PRESET RATE SECONDS WARMUP SEED: the files of that preset, and then its load.
# nfs-peak.sh stop PLACE: all of it is ended and removed; nothing to stop is no failure.
#
# The disk is an ext4 on a loop device. The server is in a cgroup of its own, which is held to IOPS reads and IOPS
# writes a second on that device and to MEMORY bytes of memory, page cache and all: what it has read it forgets soon,
# so that reads reach the disk. The limit on I/O holds while a load is offered, not while its files are made.
# NFSDAEMON, NFSNAME and NFSNET are those of nfs-server.sh. NFSPEAKSIZE is how large the disk is. SPEC's presets have
# 10 MB and more of files for each request/s: they grow no further than to those of NFSPEAKLOAD requests/s.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"
PATH=$PATH:/usr/sbin:/sbin
set_default NFSPEAKSIZE 8G
set_default NFSPEAKLOAD 300
set_default NFSNAME etude-peak
set_default NFSNET 10.78.1
set_default NFSVERSIONS 3
set_default NFSENTRIES 10000
readonly CONTROLLERS='blkio memory'
SERVER=$AP_LIBRARY/nfs-server.sh

main() {
    local what=${1:-}
    (($# > 1)) || ap_fail 'expected start, ready, load or stop, and a place'
    place=$2
    shift 2
    export NFSPLACE=$place/nfs NFSROOT=$place/disk/export NFSNAME NFSNET NFSVERSIONS NFSENTRIES
    ap_check_path NFSPLACE
    case $what in
        start | ready | load | stop) "do_$what" "$@" ;;
        *) ap_fail "expected start, ready, load or stop, not '$what'" ;;
    esac
}

do_start() {
    (($# == 3)) || ap_fail 'expected nfs-peak.sh start PLACE THREADS IOPS MEMORY'
    local threads=$1 memory=$3
    ((EUID == 0)) || ap_fail 'only root may make devices and cgroups: run it as root'
    for name in threads memory; do ap_check_number "$name"; done
    ap_need mkfs.ext4 e2fsprogs
    do_stop # what an earlier start left, if it was killed
    trap 'do_stop' EXIT
    trap 'exit 0' TERM INT HUP
    mkdir -p -- "$place/disk" || ap_fail "$place/disk cannot be made"
    make_disk
    make_cgroups "$memory"
    start_server "$threads"
    sleep infinity &
    wait $!
}

# Nothing of it is done later in the background: that would be I/O in the middle of a trial.
make_disk() {
    local device
    truncate -s "$NFSPEAKSIZE" "$place/disk.image" || ap_fail "$place/disk.image cannot be made"
    device=$(losetup --find --show --direct-io=on "$place/disk.image") || ap_fail 'no loop device is to be had'
    echo "$device" >"$place/loop"
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$device" || ap_fail "$device: no ext4 could be made"
    mount -o noatime "$device" "$place/disk" || ap_fail "$device could not be mounted"
    mkdir -p -- "$place/disk/export"
}

make_cgroups() {
    local controller cgroup
    if [[ -d /sys/fs/cgroup/blkio && -d /sys/fs/cgroup/memory ]]; then
        for controller in $CONTROLLERS; do
            cgroup=/sys/fs/cgroup/$controller/etude-nfs-peak-$NFSNAME
            mkdir "$cgroup" || ap_fail "$cgroup cannot be made: does another nfs-peak.sh run? Set NFSNAME for this one"
            echo "$cgroup" >>"$place/cgroups"
        done
        limit "$cgroup/memory.limit_in_bytes" "$1"
    elif grep -qw io /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then
        cgroup=/sys/fs/cgroup/etude-nfs-peak-$NFSNAME
        limit /sys/fs/cgroup/cgroup.subtree_control '+io +memory'
        mkdir "$cgroup" || ap_fail "$cgroup cannot be made: does another nfs-peak.sh run? Set NFSNAME for this one"
        echo "$cgroup" >"$place/cgroups"
        limit "$cgroup/memory.max" "$1"
    else
        ap_fail 'no cgroup here can limit I/O and memory: a peak would be that of this machine'"'"'s own disk'
    fi
}

limit() {
    { echo "$2" >"$1"; } 2>/dev/null || ap_fail "$1 does not take $2"
}

# hold IOPS: so many reads, and so many writes, a second. 0 is no limit.
hold() {
    local numbers cgroup
    numbers=$(lsblk --noheadings --nodeps --output MAJ:MIN "$(cat "$place/loop")" | tr -d ' ')
    read -r cgroup <"$place/cgroups" || ap_fail "nothing runs in $place"
    if [[ -e $cgroup/blkio.throttle.read_iops_device ]]; then
        limit "$cgroup/blkio.throttle.read_iops_device" "$numbers $1"
        limit "$cgroup/blkio.throttle.write_iops_device" "$numbers $1"
    else
        limit "$cgroup/io.max" "$numbers riops=${1/#0/max} wiops=${1/#0/max}"
    fi
}

# The server's programs begin in the cgroups; the kernel's server has threads of the kernel's, which no cgroup holds.
start_server() {
    (
        while IFS= read -r cgroup; do limit "$cgroup/cgroup.procs" "$BASHPID"; done <"$place/cgroups"
        NFSTHREADS=$1 exec "$SERVER" restart
    ) || exit 1
    touch "$place/serves"
}

do_ready() {
    [[ -e $place/serves ]] && "$SERVER" status >/dev/null
}

# Files first, at the disk's full speed; then all is written out and forgotten, and the disk is held.
do_load() {
    (($# == 6)) || ap_fail 'expected nfs-peak.sh load PLACE IOPS PRESET RATE SECONDS WARMUP SEED'
    local iops=$1 preset=$2 rate=$3 seconds=$4 warmup=$5 seed=$6 offer sized
    offer=("$SERVER" client 1 etude-engine load --json --nfs "nfs://$NFSNET.1/vfs?mountport=20048" --preset "$preset")
    sized=$rate
    if [[ $preset == *sfs* ]]; then
        sized=$(awk -v rate="$rate" -v most="$NFSPEAKLOAD" 'BEGIN { print rate < most ? rate : most }')
    fi
    offer+=(--sized-for "$sized")
    hold 0
    "${offer[@]}" --populate >&2 || exit
    sync -f "$place/disk"
    forget
    hold "$iops"
    exec "${offer[@]}" --rate "$rate" --seconds "$seconds" --warm-up "$warmup" --window 1 \
        --seed "$seed" --outstanding 1000 --drain 5
}

# What the server has in memory of the disk; what the kernel has of it besides is of everybody's.
forget() {
    local cgroup
    while IFS= read -r cgroup; do
        if [[ -e $cgroup/memory.force_empty ]]; then echo 0 >"$cgroup/memory.force_empty" 2>/dev/null; fi
        if [[ -e $cgroup/memory.reclaim ]]; then echo 1G >"$cgroup/memory.reclaim" 2>/dev/null; fi
    done <"$place/cgroups"
    echo 2 >/proc/sys/vm/drop_caches 2>/dev/null ||
        ap_say 'caches cannot be dropped here: names and attributes stay in memory'
}

do_stop() {
    local cgroup tries
    rm -f -- "$place/serves"
    "$SERVER" stop || ap_say 'the server could not be ended in order'
    # The server's own mounts go with its last process, which may be a moment later.
    for ((tries = 0; tries < 50; tries++)); do
        mountpoint -q "$place/disk" || break
        umount "$place/disk" 2>/dev/null && break
        sleep 0.1
    done
    ! mountpoint -q "$place/disk" || umount --lazy "$place/disk"
    if [[ -e $place/loop ]]; then losetup --detach "$(cat "$place/loop")" 2>/dev/null || true; fi
    if [[ -e $place/cgroups ]]; then
        while IFS= read -r cgroup; do rmdir "$cgroup" 2>/dev/null || true; done <"$place/cgroups"
    fi
    rm -f -- "$place/loop" "$place/cgroups" "$place/disk.image"
}

main "$@"
