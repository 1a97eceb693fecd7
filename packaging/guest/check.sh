#!/bin/bash
# For .ci/run: builds the test machine where it is not built, and runs its short tests, within five minutes.
# What is missing for that, or time, is said and no failure. A test that fails is one.
set -euo pipefail
cd "$(dirname "$0")/../.."
limit_s=${1:-300} build_s=180
python=.venv/bin/python

skipped() {
    echo "== SKIPPED guest: $*"
    exit 0
}

for program in qemu-system-x86_64 qemu-img mmdebstrap mkfs.ext4; do
    command -v "$program" >/dev/null || skipped "no program $program"
done
((EUID == 0)) || skipped 'only root can build it'

make wheel
status=0
timeout --kill-after=10 "$build_s" "$python" packaging/guest/build.py dist/*.whl || status=$?
case $status in
0) ;;
5) skipped 'it cannot be built here, for the reason above' ;;
124 | 137) skipped "it was not built within $build_s s" ;;
*) exit "$status" ;;
esac

left_s=$((limit_s - SECONDS))
((left_s > 60)) || skipped "$left_s s of $limit_s s are left after building it: too few for a boot"
status=0
timeout --kill-after=10 "$left_s" "$python" -m pytest -m short tests/e2e/guest || status=$?
case $status in
124 | 137) skipped "its short tests were not done within the $left_s s that were left" ;;
*) exit "$status" ;;
esac
