#!/bin/bash
# postmark.sh: Postmark in a directory of each worker, measured. For EXEC; needs a directory $TESTDIR.
#
# The report goes to the worker's log, its counts into the measurement. They do not depend on the speed of the
# machine: counts that differ from those of an earlier trial mean that it was not the same work, and are a
# failure.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"

set_default POSTMARK_NUMBER 500
set_default POSTMARK_TRANSACTIONS 1000
set_default POSTMARK_SIZE_LOW 500
set_default POSTMARK_SIZE_HIGH 10000
set_default POSTMARK_SUBDIRECTORIES 10
set_default POSTMARK_READ 4096
set_default POSTMARK_WRITE 4096
set_default POSTMARK_BUFFERED true
set_default POSTMARK_SEED 42

main() {
    local status=0
    ap_need postmark postmark
    ap_kept postmark # the configuration, the last report and the first counts
    ap_workdir postmark
    configuration >"$KEPT.configuration" || ap_fail "$KEPT.configuration could not be written"
    ap_register end postmark_counts
    ap_measure postmark <"$KEPT.configuration" >"$KEPT.report" 2>&1 || status=$?
    cat -- "$KEPT.report"
    ((status == 0)) || ap_fail "postmark ended with $status"
    ! grep -q 'Error: ' "$KEPT.report" || ap_fail "postmark: $(grep -o 'Error: .*' "$KEPT.report")"
    [[ -n $(counts) ]] || ap_fail 'postmark reported nothing; what it said stands above'
    ap_check_counts "$(counts)"
}

# Without a location it works in the working directory, whose name may then hold blanks.
configuration() {
    cat <<END
set number $POSTMARK_NUMBER
set transactions $POSTMARK_TRANSACTIONS
set size $POSTMARK_SIZE_LOW $POSTMARK_SIZE_HIGH
set subdirectories $POSTMARK_SUBDIRECTORIES
set read $POSTMARK_READ
set write $POSTMARK_WRITE
set buffering $POSTMARK_BUFFERED
set seed $((POSTMARK_SEED + APTHREAD - 1))
set report verbose
run
quit
END
}

# `created 1556` and so on, of the report; the rates beside them are whole seconds at best.
counts() {
    LC_ALL=C sed -n -E \
        -e 's/^\t+([0-9]+) (created|read|appended|deleted) .*/\2 \1/p' \
        -e 's/^\t+([0-9.]+ [a-z]+) (read|written) .*/data_\2 \1/p' "$KEPT.report"
}

# A hook: the counts as fields.
postmark_counts() {
    local name value unit
    while read -r name value unit; do
        case $unit in
            megabytes) awk -v v="$value" -v n="$name" 'BEGIN { printf "%s = %.0f B\n", n, v * 1048576 }' ;;
            kilobytes) awk -v v="$value" -v n="$name" 'BEGIN { printf "%s = %.0f B\n", n, v * 1024 }' ;;
            bytes) printf '%s = %s B\n' "$name" "$value" ;;
            *) printf 'files_%s = %s\n' "$name" "$value" ;;
        esac
    done < <(counts)
}

main
