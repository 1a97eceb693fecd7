#!/bin/bash
# nfs-postmark.sh: transactions on small files by a client of NFS of its own, measured. For EXEC.
# nfs-postmark.sh build: compiles that client. For PRESETUP.
#
# It asks the server of nfs-server.sh, each worker from the network of a client, and needs no mount. What it has
# counted does not depend on the speed of the server: counts that differ from those of an earlier trial are a failure.
set -u
# shellcheck source=examples/lib/commonsettings
. commonsettings
# shellcheck source=examples/lib/nfsfunctions
. "$AP_LIBRARY/nfsfunctions"

set_default NFSEXPORT mem
set_default NFSVERSION "${NFSVERSIONS##* }"
set_default NFSFILES 200
set_default NFSTRANSACTIONS 1000
set_default NFSSIZELOW 500
set_default NFSSIZEHIGH 10000
set_default NFSCHUNK 2048
set_default NFSSEED 42
set_default NFSTIMEOUT 10

SOURCE=${BASH_SOURCE[0]%/*}
PROGRAM=$NFSPLACE/nfs-postmark

main() {
    nfs_settings
    case ${1:-} in
        '') measure ;;
        build) build ;;
        *) ap_fail "expected nothing, or build, not '$1'" ;;
    esac
}

# Optimised, and anew when a source is newer; a name that is there is a whole program.
build() {
    ap_need cc gcc
    nfs_place
    [[ ! $PROGRAM -nt $SOURCE/nfs-postmark.c || ! $PROGRAM -nt $SOURCE/windows.h ]] || return 0
    echo '#include <nfsc/libnfs.h>' | cc -E -include sys/time.h - >/dev/null 2>&1 ||
        ap_fail 'nfsc/libnfs.h is not installed; it is in the Debian package libnfs-dev'
    { cc -O2 -Wall -Wextra -o "$PROGRAM.new" "$SOURCE/nfs-postmark.c" -lnfs && mv -- "$PROGRAM.new" "$PROGRAM"; } ||
        ap_fail 'nfs-postmark.c could not be compiled; what cc said stands above'
}

measure() {
    local status=0
    [[ $NFSEXPORT =~ ^(mem|vfs)$ ]] || ap_fail "NFSEXPORT is '$NFSEXPORT', expected mem or vfs"
    [[ $NFSVERSION =~ ^[34]$ && $NFSVERSIONS == *$NFSVERSION* ]] ||
        ap_fail "NFSVERSION is '$NFSVERSION', expected one of NFSVERSIONS=$NFSVERSIONS"
    [[ -x $PROGRAM ]] || ap_fail 'there is no client yet; first: nfs-postmark.sh build'
    [[ -e /run/netns/$NFSNAME-client$(nfs_client) ]] ||
        ap_fail "client $(nfs_client) has no network; first: nfs-server.sh start"
    ap_kept nfs-postmark
    ap_register end report_fields
    APTIMER="nsenter --net=/run/netns/$NFSNAME-client$(nfs_client) -- $APTIMER"
    ap_measure "$PROGRAM" "nfs://$NFSSERVER/$NFSEXPORT?version=$NFSVERSION&nfsport=$NFSPORT&mountport=20048" \
        "name=worker-$APTHREAD" "files=$NFSFILES" "transactions=$NFSTRANSACTIONS" "low=$NFSSIZELOW" \
        "high=$NFSSIZEHIGH" "chunk=$NFSCHUNK" "seed=$((NFSSEED + APTHREAD - 1))" "timeout=$NFSTIMEOUT" \
        >"$KEPT.report" 2>"$KEPT.errors" || status=$?
    cat -- "$KEPT.report"
    cat -- "$KEPT.errors" >&2
    ((status == 0)) || fail_with_the_server "nfs-postmark ended with $status"
    ap_check_counts "$(grep -v _rate "$KEPT.report")"
}

report_fields() {
    grep ' = ' "$KEPT.report"
}

# Why a client has failed is often what the server has to say.
fail_with_the_server() {
    local said
    said=$(nfs-server.sh status 2>&1) || ap_fail "$1; ${said#nfs-server.sh: }"
    said=$(grep '^nfs-postmark: ' "$KEPT.errors" | tail -n 1)
    ap_fail "$1: ${said#nfs-postmark: }"
}

main "$@"
