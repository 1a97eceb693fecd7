#!/bin/bash
# aging.sh make|write|read|remove: AGING_FILES files of 1 MiB are made once, beside the file system under test;
# written to it; read, measured; and removed. The same bytes each time. Each row has the fragments of these files.
set -u
# shellcheck source=examples/lib/commonsettings
. commonsettings

set_default AGING_FILES 128
ap_check_number AGING_FILES

# 1 MiB of text that is in no other file, from its number alone.
content() {
    awk -v number="$1" 'BEGIN { for (line = 0; line < 16384; line++) printf "%08d %08d %.45s\n", number, line,
        sprintf("%.0f%.0f%.0f", (number * 16384 + line) * 7919, line * 104729, number * 15485863) \
        "---------------------------------------------" }'
}

make_files() {
    local file
    ap_scratch
    [[ ! -e $APSCRATCH/files/made ]] || return 0
    rm -rf -- "$APSCRATCH/files"
    mkdir -- "$APSCRATCH/files" || ap_fail "$APSCRATCH/files cannot be made"
    for ((file = 0; file < AGING_FILES; file++)); do
        content "$file" >"$APSCRATCH/files/$(printf '%05d' "$file")" || ap_fail 'the files could not be made'
    done
    echo ETUDE_NEEDLE >"$APSCRATCH/files/made"
}

write_files() {
    ap_check_testdir
    rm -rf -- "${TESTDIR:?}/data"
    cp -r -- "$APSCRATCH/files" "$TESTDIR/data" || ap_fail "the files could not be written to $TESTDIR"
    sync -f "$TESTDIR"
}

aging_end() {
    etude-engine fragments --block "$TESTDIR/data" | sed -n 's/^mean = /fragments_per_file = /p'
}

case ${1:-} in
    make) make_files ;;
    write) write_files ;;
    read)
        ap_register end aging_end
        ap_measure grep -l -e ETUDE_NEEDLE "$TESTDIR/data"/* || ap_fail 'the files could not be read'
        ;;
    remove) rm -rf -- "${APSCRATCH:?}/files" ;;
    *) ap_fail "expected make, write, read or remove, found '${1:-}'" ;;
esac
