"""The files of a job in its directory: the name by which it is found again, its script, and the status of that script.

The name is on disk before the job is submitted, so a controller that dies before Slurm's answer leaves no job that the
next one cannot find. The script, in plain sh, checks that its node can run the job and runs it: the only process of
ours around the measured command on a node is one shell that waits for it. The status survives a controller crash: the
scheduler forgets ended jobs within minutes, and a controller may be away for days.
"""

from __future__ import annotations

import platform
import re
import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from etude import codec
from etude.cluster.pool.job import How, Job, JobEnd
from etude.codec import decoded, parsed, read
from etude.errors import InputError, UsageError
from etude.results.writer import replace_json, write_error
from etude.version import __version__

BEGUN, END, OUTPUT, SCRIPT, RECORD = "begun.json", "end.json", "output", "job.sh", "job.json"
SIGTERM_STATUS = 143
"""Exit status of a job whose shell got SIGTERM; the scheduler knows the reason."""

REFUSALS: dict[int | None, tuple[How, str]] = {
    121: ("no-etude", "its node has no Étude as this one: install it there, or give etude=copied"),
    122: ("other-architecture", "its node has another architecture: keep to one by constraint="),
    123: ("no-space", "its node has no space for results: free some"),
    124: (
        "no-space",
        "the results directory is not there on its node: is it shared with it? (results=copied)",
    ),
}
"""Exit statuses of a job that its node could not run: known even if it could write no file."""


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


@dataclass(frozen=True, slots=True)
class StagedJob:
    """Contents of `job.json`."""

    token: str
    """Unique name of the job."""
    submitted_s: codec.Finite
    """Seconds since the epoch."""
    id: str | None = None
    """The scheduler's id; None until it has answered."""


def staged_job(place: Path) -> StagedJob | None:
    """Record of a directory from which a job was submitted, or was about to be; None for any other directory."""
    try:
        found = read(place / RECORD, StagedJob)
    except InputError:
        return None
    written = read_start(place) if found.id is None else None
    return replace(found, id=(written.id if written else found.id) or None)


def stage_job(job: Job, record: StagedJob, checks: Checks) -> None:
    """Write the script, then the record; removes the files of an earlier job. Raises MachineRefuses."""
    try:
        job.place.mkdir(parents=True, exist_ok=True)
        for name in (BEGUN, END):
            (job.place / name).unlink(missing_ok=True)
        (job.place / SCRIPT).write_text(
            script(job, record.token, checks), encoding="utf-8", errors="surrogateescape"
        )
    except OSError as error:
        raise write_error(job.place, error) from error
    note(job.place, record)


def note(place: Path, record: StagedJob) -> None:
    """Write the record, again once the scheduler has assigned an id. Raises MachineRefuses."""
    replace_json(place / RECORD, asdict(record))


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


@dataclass(frozen=True, slots=True)
class JobStatus:
    """Contents of one of the two files."""

    nodes: str
    """List of nodes, in the scheduler's notation."""
    began_s: codec.Finite
    """Seconds since the epoch, by the node's clock."""
    ended_s: codec.Finite | None = None
    how: How | None = None
    code: int | None = None
    why: str = ""
    pid: int | None = None
    id: str = ""
    """The scheduler's id; empty without one."""


def read_start(place: Path) -> JobStatus | None:
    """Status that the job wrote at its start; None if it has not started."""
    return _read(place / BEGUN)


def read_end(place: Path) -> JobStatus | None:
    """Status that the job wrote at its end; None if it has not ended by itself."""
    found = _read(place / END)
    return found if found is not None and found.how is not None and found.ended_s is not None else None


def end_from_status(
    id: str, job: Job, written: JobStatus, nodes: tuple[str, ...], submitted_s: float
) -> JobEnd:
    """The end of a job by its own status file."""
    how, why = written.how or "failed", written.why
    if how == "failed":
        said = last_line(job.place)
        why = f"exit status {written.code}" + (f": {said}" if said else "")
    ended_s = written.began_s if written.ended_s is None else written.ended_s
    return JobEnd(id, how, written.code, nodes, why, submitted_s, written.began_s, ended_s)


def last_line(place: Path) -> str:
    """Last non-empty line of the job's output, at most 200 characters."""
    try:
        with open(place / OUTPUT, "rb") as file:
            file.seek(max(file.seek(0, 2) - 4096, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return "".join(c if c.isprintable() else " " for c in said[-1])[:200] if said else ""


def _read(path: Path) -> JobStatus | None:
    try:
        return parse_status(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def parse_status(text: str) -> JobStatus | None:
    """Status read from the text of such a file; None if it cannot be read (a disk that was full)."""
    try:
        return decoded(JobStatus, parsed(text, END), END)
    except InputError:
        return None
