#!/bin/bash
# source-tree.sh make|mount|remove: a source tree on a file system of its own, $TESTROOT/tree, that outlives a
# restart of the machine.
#
# make: a file system $FS (ext4) with so many copies of $TREE (the Python library's sources unless it is set) that
# they come to $TREE_MB megabytes, and one file that holds ETUDE_NEEDLE. mount: mounts it again where it is not
# mounted. remove: removes all of it.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"

set_default FS ext4
set_default TREE_MB 120
ap_check_number TREE_MB
export FSKEEP=yes

make_it() {
    local tree=${TREE:-}
    [[ -n $tree ]] || tree=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') ||
        ap_fail 'there is no python3 whose library could be the tree; set TREE to a directory of sources'
    [[ -d $tree ]] || ap_fail "TREE: $tree is no directory"
    fs-setup.sh "$FS" || exit 1
    local copy=0
    until ((copy > 0 && $(du -sm -- "$TESTROOT" | cut -f 1) >= TREE_MB)); do
        copy=$((copy + 1))
        mkdir -p -- "$TESTROOT/tree/$copy" || ap_fail "$TESTROOT/tree/$copy could not be made"
        tar -C "$tree" --exclude=site-packages --exclude=dist-packages --exclude=__pycache__ --sort=name -cf - . |
            tar -C "$TESTROOT/tree/$copy" -xf - || ap_fail "$tree could not be copied to $TESTROOT/tree/$copy"
    done
    echo ETUDE_NEEDLE >"$TESTROOT/tree/needle" || ap_fail "$TESTROOT/tree/needle could not be written"
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
