"""The keeper: a script that runs on another machine while we are connected, makes our directory there and removes it.

It runs in /bin/sh and reads its standard input to the end, which comes when we close the connection, are killed, or the
connection breaks: nothing of ours stays. If the keeper itself is killed, or the machine restarts, the next keeper
removes the directory. It names its keeper's process with its start time and boot, so that a live keeper is recognised.
A directory of another PID namespace (a container that shares it) cannot be judged, and is left alone.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

PREFIX = "etude-remote-"

_SCRIPT = r"""
base=$1; umask 077; PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
fail() { printf 'failed %s\n' "$*"; exit 1; }
began() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
space=$(readlink /proc/self/ns/pid)
cd "$base/" 2>/dev/null || fail "$base is no directory that may be entered"
removed=0
for old in "${base%/}"/PREFIX*; do
    [ -d "$old" ] && [ ! -L "$old" ] && [ -O "$old" ] || continue
    read -r pid since in_boot in_space <"$old/keeper" || continue
    [ "$in_boot" = "$boot" ] && [ "${in_space:-$space}" != "$space" ] && continue
    [ "$in_boot" = "$boot" ] && [ "$(began "$pid")" = "$since" ] && continue
    rm -rf "$old" && removed=$((removed + 1))
done 2>/dev/null
dir=${base%/}/PREFIX$$-$(began $$)
why=$(mkdir "$dir" 2>&1) || fail "nothing can be made in $base: ${why##*: }"
trap 'rm -rf "$dir" || { sleep 1; rm -rf "$dir"; }' EXIT
trap : HUP INT TERM PIPE
us="$$ $(began $$) $boot $space"
why=$(printf '%s\n' "$us" | { cat >"$dir/keeper"; } 2>&1) && [ -s "$dir/keeper" ] ||
    fail "nothing can be written in $base: ${why##*: }"
printf '#!/bin/sh\nexec "%s/etude-engine" measure "$@"\n' "$dir" >"$dir/aptime" && chmod 700 "$dir/aptime"
printf '%s\n' "directory $dir" "machine $(uname -m)" "system $(uname -s)" "release $(uname -r)" "boot $boot"
printf '%s\n' "name $(uname -n)" "free $(df -Pk "$dir" | tail -n 1)" "path $PATH" "removed $removed" "ready"
cat >/dev/null
"""


@dataclass(frozen=True)
class Facts:
    """Facts that a keeper reports about its machine."""

    directory: str
    """Our directory there, until the connection ends."""
    machine: str
    release: str
    boot_id: str
    nodename: str
    free_bytes: int | None
    path: str
    removed: int
    """Number of removed directories of killed keepers."""


def command(directory: str) -> str:
    """The keeper as one line for the other machine's login shell."""
    script = _SCRIPT.replace("PREFIX", PREFIX)
    return f"exec /bin/sh -c {shlex.quote(script)} keeper {shlex.quote(directory)}"


def parse_facts(lines: list[str]) -> Facts:
    """Facts from its lines.

    Raises:
        ValueError: its failure, or that this is no keeper.
    """
    said: dict[str, str] = {}
    for line in lines:
        word, _, rest = line.partition(" ")
        said.setdefault(word, rest)
    if "failed" in said:
        raise ValueError(said["failed"])
    if said.get("system") != "Linux" or not said.get("directory", "").startswith("/"):
        raise ValueError(f"is no Linux with a POSIX shell: it prints {' '.join(lines)[:80]!r}")
    free = re.search(r"\s(\d+)\s+\d+%", said.get("free", ""))
    return Facts(
        said["directory"],
        said.get("machine", ""),
        said.get("release", ""),
        said.get("boot", ""),
        said.get("name", ""),
        int(free[1]) * 1024 if free else None,
        said.get("path", ""),
        int(said["removed"]) if said.get("removed", "").isdecimal() else 0,
    )
