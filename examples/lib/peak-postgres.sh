#!/bin/bash
# peak-postgres.sh WHAT PLACE [ARGUMENT…]: a PostgreSQL of one's own on a unix socket, for `etude peak` and `surface`.
#
#   start PLACE [OPTION…] makes it and runs it until it is ended, with these options of postgres
#   ready PLACE [SCALE]   whether it answers; with a scale, pgbench's tables are made the first time
#   pgbench PLACE …       pgbench on it, with these arguments
#
# PostgreSQL does not run as root: then it is user postgres that runs it, in a directory that this user can reach.
set -eu

main() {
    local what=$1
    place=$2
    shift 2
    bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
    [[ -n $bin ]] || bin=$(dirname "$(command -v postgres)")
    [[ -x $bin/postgres ]] || fail 'no program postgres: install the Debian package postgresql'
    case $what in
        start) start "$@" ;;
        ready) ready "$@" ;;
        pgbench) exec "$bin/pgbench" -h "$place/pg" -U "$(owner)" "$@" postgres ;;
        *) fail "unknown: $what" ;;
    esac
}

fail() {
    echo "peak-postgres.sh: $1" >&2
    exit 1
}

owner() {
    if ((EUID == 0)); then echo postgres; else id -un; fi
}

as_owner() {
    if ((EUID == 0)); then
        setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"
    else
        "$@"
    fi
}

ready() {
    "$bin/pg_isready" -q -h "$place/pg" -U "$(owner)" || exit 1
    if (($# > 0)) && [[ ! -e $place/pg/filled ]]; then
        "$bin/pgbench" -q -i -s "$1" -h "$place/pg" -U "$(owner)" postgres >/dev/null 2>&1
        touch "$place/pg/filled"
    fi
}

start() {
    # What an earlier start left, if it was killed: pg is a link to a directory whose name is short enough for a socket.
    if [[ -L $place/pg ]]; then rm -rf -- "$(readlink "$place/pg")" "$place/pg"; fi
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/etude-postgres.XXXXXX")
    ln -s "$scratch" "$place/pg"
    trap 'rm -rf -- "$scratch" "$place/pg"' EXIT
    # A second signal must not end the wait: what the server still writes would not be removed.
    trap 'trap "" TERM INT HUP; kill "$server" 2>/dev/null; wait "$server" || true; exit 0' TERM INT HUP
    if ((EUID == 0)); then chown postgres: "$scratch"; fi
    cd "$scratch"
    as_owner "$bin/initdb" --pgdata=data --auth=trust --username="$(owner)" --no-sync >/dev/null
    # No background work that would be measured: nothing is written that has to last.
    as_owner "$bin/postgres" -D data -k "$scratch" -c listen_addresses= -c fsync=off -c autovacuum=off "$@" &
    server=$!
    wait "$server"
}

main "$@"
