#!/bin/bash
# peak-mariadb.sh WHAT PLACE [ARGUMENT…]: a MariaDB of one's own on a unix socket, for `etude peak`.
#
#   start PLACE             makes it and runs it until it is ended
#   ready PLACE ROWS        whether it answers; the first time sysbench's table is made, of so many rows
#   sysbench PLACE ROWS …   sysbench on that table, with these arguments, a workload such as oltp_read_write among them
set -eu

main() {
    local what=$1
    place=$2
    shift 2
    PATH=$PATH:/usr/sbin
    data=$place/mariadb user=$(id -un)
    socket=./mariadb.sock # within its directory: a socket's path may have 107 bytes
    case $what in
        start) start ;;
        ready) enter && ready "$1" ;;
        sysbench) enter && run_sysbench "$@" ;;
        *) fail "unknown: $what" ;;
    esac
}

fail() {
    echo "peak-mariadb.sh: $1" >&2
    exit 1
}

enter() {
    cd "$data" 2>/dev/null || exit 1
}

start() {
    command -v mariadbd >/dev/null || fail 'no program mariadbd: install the Debian package mariadb-server'
    rm -rf -- "$data"
    mariadb-install-db --no-defaults --user="$user" --datadir="$data" --skip-test-db >/dev/null
    exec mariadbd --no-defaults --user="$user" --datadir="$data" --socket="$socket" --skip-networking \
        --innodb-flush-log-at-trx-commit=0 --skip-log-bin
}

ready() {
    mariadb-admin --no-defaults --socket="$socket" --user="$user" --silent ping || exit 1
    if [[ ! -e filled ]]; then
        mariadb --no-defaults --socket="$socket" --user="$user" -e 'CREATE DATABASE IF NOT EXISTS test'
        (run_sysbench "$1" oltp_point_select cleanup) >/dev/null # what a killed one has made
        (run_sysbench "$1" oltp_point_select prepare) >/dev/null
        touch filled
    fi
}

run_sysbench() {
    local rows=$1
    shift
    command -v sysbench >/dev/null || fail 'no program sysbench: install the Debian package sysbench'
    exec sysbench --mysql-socket="$socket" --mysql-user="$user" --mysql-db=test --table-size="$rows" "$@"
}

main "$@"
