#!/bin/bash
# readdir.sh [generate]: walks a tree by find, measured. For EXEC; `readdir.sh generate` makes the tree.
#
# The tree is $TESTDIR/tree: READDIR_DIRECTORIES directories of READDIR_FILES empty files each; every file is
# looked up by its name as well, since find asks for the time of its last change.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"

set_default READDIR_DIRECTORIES 4
set_default READDIR_FILES 2000

generate() {
    local number
    rm -rf -- "${TESTDIR:?}/tree"
    for ((number = 0; number < READDIR_DIRECTORIES; number++)); do
        mkdir -p -- "$TESTDIR/tree/$number" || return 1
        (cd -- "$TESTDIR/tree/$number" && seq -f 'entry-%012.0f' "$READDIR_FILES" | xargs touch --) || return 1
    done
    sync -f "$TESTDIR"
}

ap_check_testdir
case ${1:-} in
    generate) generate || ap_fail "no tree of $READDIR_FILES files a directory could be made in $TESTDIR" ;;
    '')
        [[ -d $TESTDIR/tree ]] ||
            ap_fail "there is no $TESTDIR/tree; make it by: PRESETUP readdir.sh generate"
        cd -- "$TESTDIR" || exit 1
        ap_measure find tree -newermt @0 >/dev/null || ap_fail "find ended with $?"
        ;;
    *) ap_fail "expected nothing or 'generate', found '$1'" ;;
esac
