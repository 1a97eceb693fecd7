#!/bin/bash
# Runs a part of the tests. Where few fail, these run once more, alone: who else was on the machine then is no reason.
# What passes only then is named, in a warning: a test that does so often is wrong, and is mended.
# usage: tests.sh PYTHON [OPTION OF PYTEST ...]
set -euo pipefail
few=5
python=$1
shift
kept=$(mktemp -d)
trap 'rm -rf -- "$kept"' EXIT
status=0
"$python" -m pytest -o cache_dir="$kept" "$@" || status=$?
((status == 1)) || exit "$status"
mapfile -t failed < <("$python" -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' \
    "$kept/v/cache/lastfailed")
((${#failed[@]} <= few)) || exit "$status"
echo "== failed, and run once more, alone: ${failed[*]}"
"$python" -m pytest "${failed[@]}"
echo "== WARNING: ${#failed[@]} passed only when run once more, alone: ${failed[*]}"
