#!/bin/bash
# mariadb.sh start PLACE: a MariaDB of one's own on a unix socket, with a table of 10,000 rows; until it is ended.
# mariadb.sh ready PLACE: whether it answers; the first time the table is made.
# mariadb.sh sysbench PLACE …: sysbench's point selects on it, with these arguments.
set -eu
what=$1 place=$2
shift 2
socket=$place/mariadb.sock data=$place/mariadb user=$(id -un)
selects() {
    sysbench oltp_point_select --mysql-socket="$socket" --mysql-user="$user" --mysql-db=test --table-size=10000 "$@"
}
case $what in
    start)
        rm -rf -- "$data"
        mariadb-install-db --no-defaults --user="$user" --datadir="$data" --skip-test-db >/dev/null
        exec /usr/sbin/mariadbd --no-defaults --user="$user" --datadir="$data" --socket="$socket" --skip-networking \
            --innodb-flush-log-at-trx-commit=0 --skip-log-bin
        ;;
    ready)
        mariadb-admin --no-defaults --socket="$socket" --user="$user" --silent ping || exit 1
        if [[ ! -e $data/filled ]]; then
            mariadb --no-defaults --socket="$socket" --user="$user" -e 'CREATE DATABASE IF NOT EXISTS test'
            selects prepare >/dev/null
            touch "$data/filled"
        fi
        ;;
    sysbench) selects "$@" ;;
esac
