#!/bin/bash
# source-tree.sh make|mount|remove: a source tree on a file system of its own, $TESTROOT/tree, that outlives a
# restart of the machine.
#
# make: a file system $FS (ext4) with a copy of $TREE, the Python library's sources unless it is set, and one
# file that holds ETUDE_NEEDLE. mount: mounts it again where it is not mounted. remove: removes both.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"

set_default FS ext4
export FSKEEP=yes

make_it() {
    local tree=${TREE:-}
    [[ -n $tree ]] || tree=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') ||
        ap_fail 'there is no python3 whose library could be the tree; set TREE to a directory of sources'
    [[ -d $tree ]] || ap_fail "TREE: $tree is no directory"
    fs-setup.sh "$FS" || exit 1
    mkdir -- "$TESTROOT/tree" || ap_fail "$TESTROOT/tree could not be made"
    tar -C "$tree" --exclude=site-packages --exclude=dist-packages --exclude=__pycache__ --sort=name -cf - . |
        tar -C "$TESTROOT/tree" -xf - || ap_fail "$tree could not be copied to $TESTROOT/tree"
    echo ETUDE_NEEDLE >"$TESTROOT/tree/needle"
    sync
}

case ${1:-} in
    make) make_it ;;
    mount) ap_mounted "$TESTROOT" >/dev/null || FSFORMAT=no fs-setup.sh "$FS" ;;
    remove)
        fs-cleanup.sh "$FS"
        rm -f -- "$APSCRATCH/$FS.img"
        ;;
    *) ap_fail "expected make, mount or remove, found '${1:-}'" ;;
esac
