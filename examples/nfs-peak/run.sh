#!/bin/bash
# run.sh [--quick | --brief] DIR: the peak rate of an NFS server for the four workloads of the paper, and then over its
# threads.
#
# Results and figures are in DIR; the same command goes on where it was ended. --brief: the surface alone, of three
# numbers of threads and short trials, in a quarter of an hour. --quick: one short search, to see that it runs.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
presets='specsfs97 web db_tp mail'
status=0

main() {
    local length=full
    case ${1:-} in
        --quick | --brief)
            length=${1#--}
            shift
            ;;
    esac
    (($# == 1)) || {
        echo 'run.sh: expected run.sh [--quick | --brief] DIR' >&2
        exit 2
    }
    place=$1
    mkdir -p -- "$place"
    case $length in
        full) full ;;
        brief) brief ;;
        quick) quick ;;
    esac
    exit "$status"
}

# A search that does not meet its target (1) is a result, too; anything else ends it.
full() {
    local preset results=()
    for preset in $presets; do
        etude peak "$here/server.toml" -o "$place/$preset" --factor preset="$preset" || goes_on
        results+=("$place/$preset")
    done
    etude peak "${results[@]}" --figures "$place/figures" --format png || goes_on
    surface "$here/surface.toml"
}

brief() {
    sed -e 's/^kind = "region"/kind = "rate"/' -e 's/^width = .*/within = "20 %"/' \
        -e 's/^runlength = .*/runlength = "15 s"/' -e 's/^warmup = .*/warmup = 2/' -e "s|{here}|$here|g" \
        "$here/server.toml" >"$place/server.toml"
    sed -e 's/^levels = \[2,.*/levels = [2, 8, 32]/' -e 's/^cell = .*/cell = "2 min"/' "$here/surface.toml" \
        >"$place/surface.toml"
    surface "$place/surface.toml"
}

quick() {
    etude peak "$here/server.toml" -o "$place/web" --factor preset=web --promise rate --within 50% --budget 1m ||
        goes_on
}

surface() {
    etude surface "$1" -o "$place/surface" --figures "$place/figures" --format png || goes_on
}

goes_on() {
    local got=$?
    ((got == 1)) || exit "$got"
    status=1
}

main "$@"
