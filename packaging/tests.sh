#!/bin/bash
# Runs a part of the tests. Where few fail, these run once more, alone: who else was on the machine then is no reason.
# What passes only then is named, in a warning: a test that does so often is wrong, and is mended.
# usage: tests.sh PYTHON [OPTION OF PYTEST ...]
set -euo pipefail
few=5
python=$1
shift
status=0
"$python" -m pytest "$@" || status=$?
((status == 1)) || exit "$status"
failed=$("$python" -c 'import json; print(*json.load(open(".pytest_cache/v/cache/lastfailed")), sep="\n")')
if (($(wc -l <<<"$failed") > few)); then
    exit "$status"
fi
echo '== these failed, and run once more, alone:'
sed 's/^/==   /' <<<"$failed"
mapfile -t failed <<<"$failed"
"$python" -m pytest "${failed[@]}"
echo "== WARNING: ${#failed[@]} passed only when run once more, alone: ${failed[*]}"
