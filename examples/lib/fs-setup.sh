#!/bin/bash
# fs-setup.sh FS: makes a fresh file system and mounts it at $TESTROOT. For SETUP; fs-cleanup.sh undoes it.
#
# FS is a name that a hook knows: ext2 ext3 ext4 xfs btrfs tmpfs dir, and those that are added
# (docs/howto/hooks.md). The knobs and their defaults are in docs/howto/examples.md. Without root it is a plain
# directory.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"
# shellcheck source=examples/lib/fsfunctions
. "$AP_LIBRARY/fsfunctions"

main() {
    (($# == 1)) || ap_fail 'expected the name of one file system: fs-setup.sh FS'
    fs_settings "$1"
    local medium
    medium=$(fs_medium) || exit 1
    ((APEPOCH > 1)) || ap_system_facts
    fs_take_down || ap_fail "what an earlier run left could not be removed; $APSCRATCH/fs.state lists it"
    fs_note owner "${APRESULTS:-}"
    fs_note test "${APTEST:-}"
    fs_note root "$TESTROOT"
    fs_fact fs "$FS"
    fs_fact kernel "$(uname -r)"
    case $medium in
        device) on_device ;;
        none) on_nothing ;;
        directory) in_directory ;;
    esac
    ap_hooks mounted "$FS" "${FS_DEVICE:-none}" "$TESTROOT" ||
        ap_fail "the file system $FS at $TESTROOT could not be brought into the state that was asked for"
    log_facts "$medium"
}

on_device() {
    local device
    check_mount_point
    if [[ -n $DEVICE ]]; then
        check_device
        device=$DEVICE
    else
        make_image
        device=$(ap_loop_attach "$IMAGE") ||
            ap_fail 'no loop device could be had; in a container FSPLAIN=yes uses a plain directory'
    fi
    FS_DEVICE=$device
    fs_note device "$device"
    [[ $FSFORMAT == no ]] || ap_hooks device "$FS" "$device" || ap_fail "the device $device could not be prepared"
    [[ $FSFORMAT == no ]] || format "$device"
    mount_it "$device"
}

on_nothing() {
    check_mount_point
    mount_it none
}

# What is mounted over is hidden: that must be nobody's directory.
check_mount_point() {
    local source
    source=$(ap_mounted "$TESTROOT") &&
        ap_fail "TESTROOT: $source is mounted at $TESTROOT, and not by this; unmount it, or set another"
    [[ $FSFORCE == yes || ! -d $TESTROOT || -z $(ls -A -- "$TESTROOT") ]] ||
        ap_fail "TESTROOT: $TESTROOT is not empty; set another, or FSFORCE=yes to mount over it"
}

# The image is sparse: it takes the room that is written, and a full disk below it would be an error of the
# disk.
make_image() {
    local room
    if [[ $FSFORMAT == no ]]; then
        fs_note kept "$IMAGE"
        [[ -f $IMAGE ]] ||
            ap_fail "FSFORMAT=no, but there is no $IMAGE;" \
                "make it by: export FSKEEP=yes; fs-setup.sh $FS; fs-cleanup.sh $FS"
        return
    fi
    fs_note image "$IMAGE"
    rm -f -- "$IMAGE"
    truncate -s "$FSIMAGESIZE" -- "$IMAGE" ||
        ap_fail "FSIMAGESIZE: no image of $FSIMAGESIZE could be made at $IMAGE"
    room=$(df --output=avail -B1 -- "$APSCRATCH" | tail -n 1)
    ((room >= $(stat -c %s -- "$IMAGE"))) ||
        ap_notice "$APSCRATCH has $room bytes left, less than the image of $FSIMAGESIZE may come to need"
}

# A real device: nothing that somebody may still want is overwritten without FSFORCE.
check_device() {
    local users signature
    [[ -b $DEVICE ]] || ap_fail "DEVICE: $DEVICE is no block device"
    DEVICE=$(realpath -- "$DEVICE")
    users=$(ap_device_users "$DEVICE" | paste -sd ' ')
    [[ -z $users ]] || ap_fail "DEVICE: $DEVICE is in use ($users); unmount it, or set another"
    [[ $FSFORMAT == yes && $FSFORCE == no ]] || return 0
    signature=$(ap_signature "$DEVICE") ||
        ap_fail "DEVICE: what is on $DEVICE cannot be told; FSFORCE=yes overwrites it"
    [[ -z $signature ]] || grep -qxF "$DEVICE $signature" "$APSCRATCH/fs.devices" 2>/dev/null ||
        ap_fail "DEVICE: $DEVICE holds what was not made here ($signature); FSFORCE=yes overwrites it"
}

format() {
    local status=0
    ap_hook mkfs "$FS" "$1" || status=$?
    ((status != AP_DECLINED)) || ap_fail "no hook makes a file system $FS"
    ((status == 0)) || ap_fail "no file system $FS could be made on $1"
    ap_hooks tunefs "$FS" "$1" || ap_fail "the file system $FS on $1 could not be tuned"
    [[ -z $DEVICE ]] || remember_device
}

remember_device() {
    touch -- "$APSCRATCH/fs.devices"
    sed -i "\\|^$DEVICE |d" "$APSCRATCH/fs.devices"
    printf '%s %s\n' "$DEVICE" "$(ap_signature "$DEVICE")" >>"$APSCRATCH/fs.devices"
}

# What making the file system has left to be written must not be written during the test.
mount_it() {
    local status=0
    ap_hook mount "$FS" "$1" "$TESTROOT" || status=$?
    ((status != AP_DECLINED)) || ap_fail "no hook mounts a file system $FS"
    ((status == 0)) || ap_fail "$FS could not be mounted at $TESTROOT"
    sync -f "$TESTROOT"
    [[ $1 == none || -n $DEVICE ]] || sync -f "$IMAGE"
}

in_directory() {
    local type
    [[ ! -d $TESTROOT || -z $(ls -A -- "$TESTROOT") ]] ||
        ap_fail "TESTROOT: $TESTROOT is not empty; set an empty one, since all in it is removed at the end"
    fs_make_directory "$TESTROOT"
    fs_note plain "$TESTROOT"
    type=$(findmnt --noheadings --first-only --output FSTYPE --target "$TESTROOT")
    fs_fact directory "$TESTROOT"
    fs_fact holder "$type"
    [[ $FS == dir ]] ||
        ap_notice "a plain directory stands in for $FS ($(why_plain)): no mkfs, no mount and no cold cache;" \
            "the numbers are those of the file system that holds $TESTROOT, $type"
}

why_plain() {
    if [[ $FSPLAIN == yes ]]; then
        echo FSPLAIN=yes
    elif ((EUID == 0)); then
        echo 'no right to mount here'
    else
        echo 'no root'
    fi
}

log_facts() {
    {
        printf '%s\n' "${FS_FACTS[@]}"
        printf 'mount_point = %s\n' "$TESTROOT"
        [[ $1 != device ]] || { printf 'device = %s\n' "$FS_DEVICE" && ap_device_facts "$FS_DEVICE"; }
        [[ $1 == directory ]] || printf 'mount_options = %s\n' "$(ap_mount_options "$TESTROOT")"
    } | ap_log_block filesystem
    [[ $1 == device && $APEPOCH -le 1 ]] || return 0
    ap_hooks fsinfo "$FS" "$FS_DEVICE" "$TESTROOT" | ap_log_block fsinfo
}

main "$@"
