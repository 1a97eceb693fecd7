#!/bin/bash
# Runs one part of the checks and says how long it took, against its share of the time.
# usage: part.sh NAME SECONDS COMMAND [ARGUMENT ...]
set -euo pipefail
name=$1 share_s=$2
shift 2
echo "== $name (share: $share_s s)"
start=$SECONDS
status=0
"$@" || status=$?
took_s=$((SECONDS - start))
echo "== $name: $took_s s of $share_s s"
if ((took_s > share_s)); then
    echo "== WARNING: $name took $((took_s - share_s)) s more than its share"
fi
exit "$status"
