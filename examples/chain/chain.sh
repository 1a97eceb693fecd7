#!/bin/bash
# chain.sh [--quick] [RESULTS]: a program is recorded, its I/O becomes a load, and two file systems are rated by it.
#
# RESULTS (default chain-results) must not be there. What is made there: the roll, a search on ext4, one on xfs, and
# report.html, which compares them. Needs root (loop devices), sqlite3, e2fsprogs and xfsprogs; about ten minutes,
# with --quick two, which is too short for an answer that holds.
set -eu
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly SYSTEMS=(ext4 xfs)

main() {
    local quick=no system status=0 options=()
    if [[ ${1:-} == --quick ]]; then
        quick=yes
        shift
    fi
    (($# <= 1)) || fail 'expected: chain.sh [--quick] [RESULTS]'
    results=${1:-chain-results}
    check
    mkdir -p -- "$(dirname -- "$results")"
    mkdir -- "$results" || fail "$results: name a directory that is not there yet"
    results=$(realpath -- "$results")
    harness=$here/chain.toml
    if [[ $quick == yes ]]; then
        options=(--budget 30s)
        harness=$results/quick.toml
        sed -e 's/^runlength = .*/runlength = "5 s"/' -e "s|{here}|$here|g" "$here/chain.toml" >"$harness"
    fi
    record
    export CHAIN_ROLL=$results/sqlite.roll
    for system in "${SYSTEMS[@]}"; do
        say "The peak rate of $system."
        # 1: the target is not met, which the report says as well.
        etude peak "$harness" --factor "fs=$system" "${options[@]}" -o "$results/$system" || status=$?
        ((status <= 1)) || exit "$status"
        status=0
    done
    local searches=("${SYSTEMS[@]/#/$results/}")
    etude peak "${searches[@]}" --figures "$results" --format png >"$results/answers.txt" || true
    etude report "${searches[@]}" --title 'sqlite3 on two file systems' -o "$results/report.html"
}

check() {
    local program
    ((EUID == 0)) || fail 'the file systems are on loop devices: run it as root'
    for program in sqlite3 mkfs.ext4 mkfs.xfs etude; do
        command -v "$program" >/dev/null || fail "no program $program: install sqlite3, e2fsprogs, xfsprogs and Étude"
    done
}

# A data base of a MB, and 300 small transactions and queries. On the disk below the results: how long calls took there
# is part of the schedule.
record() {
    say 'A program is recorded.'
    scratch=$(mktemp -d "$results/recording-XXXXXX")
    trap 'rm -rf -- "$scratch"' EXIT
    cd -- "$scratch"
    sqlite3 data.db <<<'CREATE TABLE stock(item INTEGER PRIMARY KEY, name TEXT);
        WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 8000)
        INSERT INTO stock SELECT x, hex(randomblob(60)) FROM n;'
    transactions >work.sql
    etude record -o run.trace -- sqlite3 data.db '.read work.sql' >answers
    etude script run.trace -o "$results/sqlite.script"
    etude compile "$results/sqlite.script" -o "$results/sqlite.roll"
    cd -- "$results"
}

# Six of ten change a row, each a transaction of its own; the others read 20 rows.
transactions() {
    awk 'BEGIN {
        srand(1)
        print "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        for (n = 0; n < 300; n++) {
            item = int(rand() * 8000)
            if (rand() < 0.6) print "UPDATE stock SET name = hex(randomblob(60)) WHERE item = " item ";"
            else print "SELECT length(name) FROM stock WHERE item BETWEEN " item " AND " item + 20 ";"
        }
    }'
}

say() {
    printf '%s\n' "$1" >&2
}

fail() {
    printf 'chain.sh: %s\n' "$1" >&2
    exit 1
}

main "$@"
