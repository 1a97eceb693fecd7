"""The script of a job: checks that its node can run it, runs it, and writes its status, in plain sh.

The only process of ours around the measured command on a node is one shell that waits for it.
"""

from __future__ import annotations

import platform
import re
import shlex
from dataclasses import dataclass

from etude.cluster.pool.job import Job
from etude.cluster.pool.job_status import BEGUN, END, OUTPUT, SIGTERM_STATUS
from etude.errors import UsageError
from etude.version import __version__

MIN_SPACE_KIB = 65536
"""Minimum free space for results on a node, KiB."""

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Checks:
    """Requirements on a node."""

    python: str | None
    """Path of a Python with this very version of Étude; None: not needed."""
    version: str = f"etude {__version__}"
    machine: str = platform.machine()
    space_kib: int = MIN_SPACE_KIB
    is_shared: bool = True
    """True if the job's directory is on the node; else it is created there, on a local disk."""


def script(job: Job, token: str, checks: Checks) -> str:
    """Text of the script. `token` marks its processes. Raises UsageError: the name of a variable is invalid."""
    for name in job.environment:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r}: no name of an environment variable")
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(job.environment.items())]
    return _TEXT.format(
        place=shlex.quote(str(job.place)),
        directory=shlex.quote(str(job.directory)),
        environment="\n".join(lines),
        command=shlex.join(job.command),
        checks=_checks(checks),
        make=""
        if checks.is_shared
        else f"mkdir -p {shlex.quote(str(job.place))} {shlex.quote(str(job.directory))}\n",
        begun=BEGUN,
        end=END,
        output=OUTPUT,
        stopped=SIGTERM_STATUS,
        token=token,
    )


def _checks(checks: Checks) -> str:
    lines = [
        f'[ "$(uname -m)" = {checks.machine} ] || refuse other-architecture 122'
        f' "its node is a $(uname -m), not a {checks.machine}: keep to one by constraint="',
        "free=$(df -k --output=avail . | tail -n 1)",
        f'[ "${{free:-0}}" -ge {checks.space_kib} ] || refuse no-space 123'
        f' "$((${{free:-0}} / 1024)) MiB are free for results, expected {checks.space_kib // 1024}: free some"',
    ]
    if checks.python is not None:
        lines += [
            f"said=$({shlex.quote(checks.python)} -P -m etude.cli.main --version 2>&1 | tail -n 1)",
            f'[ "$said" = {shlex.quote(checks.version)} ] || refuse no-etude 121'
            f' "expected {checks.version} of its Python, found: $said: install it there, or give etude=copied"',
        ]
    return "\n".join(lines)


_TEXT = """\
#!/bin/sh
# Made by Étude. The end of this job is recorded in {end}, beside this file.
{make}cd {place} 2>/dev/null || exit 124
exec >{output} 2>&1 </dev/null
now() {{ date +%s.%N; }}
began=$(now)
node=${{SLURMD_NODENAME:-$(uname -n)}}
where=$(printf '"nodes": "%s", "id": "%s", "pid": %s, "began_s": %s' \\
    "${{SLURM_JOB_NODELIST:-$node}}" "${{SLURM_JOB_ID:-}}" $$ "$began")
tell() {{
    why=$(printf %s "$3" | tr -cd 'A-Za-z0-9 .,:;/_=()+-' | cut -c 1-300)
    (cd {place} && printf '{{"how": "%s", "code": %s, "why": "%s", %s, "ended_s": %s}}\\n' \\
        "$1" "$2" "$why" "$where" "$(now)" >{end}.new && mv {end}.new {end})
}}
refuse() {{
    tell "$1" null "$3"
    exit "$2"
}}
# What the command leaves behind is found by its environment: not all of Slurm's ways to track processes see it.
export ETUDE_JOB={token}
end_what_is_left() {{
    for signal in TERM KILL; do
        left=$(env -u ETUDE_JOB grep -lsz '^ETUDE_JOB={token}$' /proc/[0-9]*/environ |
            tr -cd '0-9\\n' | grep -vx $$) || break
        kill -$signal $left 2>/dev/null
        sleep 0.2
    done
}}
trap 'end_what_is_left; exit {stopped}' TERM INT HUP
{checks}
printf '{{%s}}\\n' "$where" >{begun}.new && mv {begun}.new {begun} || refuse no-space 123 'results cannot be written'
cd {directory} || refuse no-space 124 'the directory in which it runs is not there'
{environment}
{command}
code=$?
end_what_is_left
case $code in
0) tell done 0 '' ;;
*) tell failed $code '' ;;
esac
exit $code
"""
