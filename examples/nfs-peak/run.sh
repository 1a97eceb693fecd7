#!/bin/bash
# run.sh [--quick] DIR: the peak rate of an NFS server for the four workloads of the paper, and then over its threads.
#
# Results and figures are in DIR; the same command goes on where it was ended. --quick: one short search, to see that it runs.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
presets='specsfs97 web db_tp mail'

main() {
    local quick='' place preset results=() status=0
    if [[ ${1:-} == --quick ]]; then
        quick=1
        shift
    fi
    (($# == 1)) || {
        echo 'run.sh: expected run.sh [--quick] DIR' >&2
        exit 2
    }
    place=$1
    mkdir -p -- "$place"
    if [[ -n $quick ]]; then
        exec etude peak "$here/server.toml" -o "$place/web" --factor preset=web --promise rate --within 50% --budget 1m
    fi
    # A search that does not keep its promise (1) is a result, too; anything else ends it.
    for preset in $presets; do
        etude peak "$here/server.toml" -o "$place/$preset" --factor preset="$preset" || goes_on
        results+=("$place/$preset")
    done
    etude peak "${results[@]}" --figures "$place/figures" --format png || goes_on
    etude surface "$here/surface.toml" -o "$place/surface" --figures "$place/figures" --format png || goes_on
    exit "$status"
}

goes_on() {
    local got=$?
    ((got == 1)) || exit "$got"
    status=1
}

main "$@"
