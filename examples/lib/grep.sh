#!/bin/bash
# grep.sh [generate]: searches a tree of files for a word, measured. For EXEC; `grep.sh generate` makes the
# tree, for PRESETUP or SETUP.
#
# The tree is $TESTDIR/tree, of GREP_FILES files; all workers read the same one.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"

set_default GREP_FILES 500
set_default GREP_FUNCTIONS 40
set_default GREP_WORD ETUDE_NEEDLE

ap_check_testdir
case ${1:-} in
    generate)
        rm -rf -- "${TESTDIR:?}/tree"
        "$AP_LIBRARY/generate-tree.sh" "$TESTDIR/tree" "$GREP_FILES" "$GREP_FUNCTIONS" ||
            ap_fail "no tree of $GREP_FILES files could be made in $TESTDIR"
        sync -f "$TESTDIR"
        ;;
    '')
        [[ -d $TESTDIR/tree ]] || ap_fail "there is no $TESTDIR/tree; make it by: PRESETUP grep.sh generate"
        cd -- "$TESTDIR" || exit 1
        ap_measure grep -r -l -e "$GREP_WORD" tree ||
            ap_fail "grep ended with $?; 1 means that '$GREP_WORD' is in no file"
        ;;
    *) ap_fail "expected nothing or 'generate', found '$1'" ;;
esac
