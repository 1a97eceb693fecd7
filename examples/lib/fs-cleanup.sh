#!/bin/bash
# fs-cleanup.sh FS: unmounts what fs-setup.sh has mounted, and removes what it has made. For CLEANUP.
#
# FSKEEP=yes keeps the image, and FSCHECK=yes looks for errors in the file system. Nothing to undo is no
# failure.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"
# shellcheck source=examples/lib/fsfunctions
. "$AP_LIBRARY/fsfunctions"

main() {
    local status=0
    (($# == 1)) || ap_fail 'expected the name of one file system: fs-cleanup.sh FS'
    fs_settings "$1"
    unmount_it
    [[ $FSCHECK == no ]] || check || status=1
    fs_take_down ||
        ap_fail "not all could be removed; $APSCRATCH/fs.state lists it, and the next fs-setup.sh tries again"
    return "$status"
}

unmount_it() {
    local device status=0
    device=$(fs_noted device)
    [[ -n $(fs_noted mount) ]] || return 0
    ap_hook unmount "$FS" "${device:-none}" "$TESTROOT" || status=$?
    ((status == 0)) || ap_fail "$FS could not be unmounted from $TESTROOT"
}

check() {
    local device status=0
    device=$(fs_noted device)
    [[ -n $device ]] || return 0
    ap_hook fscheck "$FS" "$device" || status=$?
    ((status != AP_DECLINED)) || ap_fail "FSCHECK=yes, but no hook checks a file system $FS"
    ((status == 0)) || ap_say "the file system $FS on $device has errors"
    return "$status"
}

main "$@"
