#!/bin/bash
# leak.sh keep|free|clean-up: takes LEAK_MIB of the machine's memory, and gives it back or does not.
#
#   keep      takes it and ends: it stays taken, as what a kernel module or a server loses does
#   free      does the same work, and gives it back before it ends
#   clean-up  gives back all that is still taken, also what an earlier run left that was killed
#
# The memory is that of files on a tmpfs (LEAK_DIR): they outlive the process, and need no privileges.
set -u
export LC_ALL=C

LEAK_MIB=${LEAK_MIB:-16}
LEAK_DIR=${LEAK_DIR:-/dev/shm}
mine=$LEAK_DIR/etude-leak-$(id -u)

fail() {
    printf 'leak.sh: %s\n' "$*" >&2
    exit 1
}

# Whatever lies here under our name must be a directory of ours: anybody may write to /dev/shm.
check_mine() {
    [[ -d $mine && ! -L $mine && -O $mine ]] || fail "$mine is not a directory of yours; remove it, or set LEAK_DIR"
}

take() {
    [[ $LEAK_MIB =~ ^[1-9][0-9]{0,5}$ ]] || fail "LEAK_MIB is '$LEAK_MIB', expected a whole number of MiB from 1"
    [[ $(stat -f -c %T -- "$LEAK_DIR" 2>&1) == tmpfs ]] ||
        fail "$LEAK_DIR is no tmpfs, whose files are memory; set LEAK_DIR to one"
    mkdir -m 700 -- "$mine" 2>/dev/null || check_mine
    taken=$mine/${APTEST:-test}-${APEPOCH:-0}-${APTHREAD:-1}-$$
    head -c "${LEAK_MIB}M" /dev/zero >"$taken" || {
        rm -f -- "$taken"
        fail "$LEAK_DIR has no room for $LEAK_MIB MiB more; a smaller loss, such as LEAK_MIB=2, may fit"
    }
}

case ${1:-} in
    keep) take ;;
    free)
        take
        rm -f -- "$taken"
        ;;
    clean-up)
        [[ -e $mine || -L $mine ]] || exit 0
        check_mine
        rm -rf -- "$mine"
        ;;
    *) fail "expected keep, free or clean-up, found '${1:-}'" ;;
esac
