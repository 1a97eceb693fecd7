"""Runs Slurm's commands: their output, or an error of one line. Transient errors are retried.

Transient errors are recognised by their text (from the library of Slurm 22.05); they have no exit status of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence

from etude.cluster.pool.slurm.answers import ACCOUNTING_FORMAT, NODE_FORMAT, QUEUE_FORMAT, Node, SlurmJob
from etude.cluster.pool.slurm.answers import accounted_job as read_accounted
from etude.cluster.pool.slurm.answers import job as read_job
from etude.cluster.pool.slurm.answers import nodes as read_nodes
from etude.cluster.pool.slurm.answers import queue as read_queue
from etude.errors import MachineRefuses
from etude.osutil.commands import Done, run_to_end
from etude.osutil.trust import tool_words

ANSWER_S = 60.0
"""Timeout of one command, s; counts as no answer."""
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 15.0

_PASSES = re.compile(
    "contact slurm controller|communication connection|timed out|zero bytes|try again|try a different|standby"
    "|temporarily|connection refused|connection reset|failed to connect|failed to send entire|zero length message"
    "|network is unreachable|no route to host|munge.*(socket|failed)|authentication (agent|error|credential)",
    re.IGNORECASE,
)

Run = Callable[[Sequence[str]], Done]


class SlurmUnreachable(MachineRefuses):
    """Slurm does not answer now, but may soon. `last`: the last message of its command."""

    def __init__(self, text: str, last: str = "") -> None:
        super().__init__(text)
        self.last = last or text


def unreachable_error(error: SlurmUnreachable, seconds: float) -> SlurmUnreachable:
    """The error for a Slurm that has not answered for `seconds`."""
    return SlurmUnreachable(
        f"Slurm has not answered for {seconds:g} s: {error}; running jobs continue: wait until it answers "
        "again (scontrol ping)",
        error.last,
    )


class Slurm:
    """The scheduler, by its commands. Tests pass `run` and `pause`."""

    def __init__(self, run: Run | None = None, pause: Callable[[float], None] = time.sleep) -> None:
        self._run, self._pause = run or _run, pause

    def nodes(self, partition: str, patience_s: float = 0.0) -> tuple[Node, ...]:
        """Nodes of that partition; empty: of the default partition, or of all if there is no default."""
        chosen = [f"--partition={partition}"] if partition else []
        found = read_nodes(self.ask(["sinfo", "-h", "-N", "-o", NODE_FORMAT, *chosen], patience_s))
        return found if partition else tuple(node for node in found if node.is_default) or found

    def submit(self, words: Sequence[str]) -> str:
        """The id of the job that these arguments of sbatch create. After SlurmUnreachable, the job may exist or not."""
        answer = self.ask(["sbatch", "--parsable", *words])
        id = answer.strip().split("\n")[-1].split(";")[0]
        if not id.isdigit():
            raise SlurmUnreachable(f"sbatch said {answer.strip()[:200]!r} instead of a job number")
        return id

    def queue(self) -> dict[str, SlurmJob]:
        """All jobs of this user, ended ones included until Slurm forgets them: one call for any number."""
        words = ["squeue", "-h", "-t", "all", "-u", str(os.getuid()), "-o", QUEUE_FORMAT]
        return read_queue(self.ask(words))

    def find_job(self, name: str, patience_s: float) -> str | None:
        """The id of the job that was submitted under that name; the last of several."""
        words = ["squeue", "-h", "-t", "all", f"--name={name}", "-o", QUEUE_FORMAT]
        found = read_queue(self.ask(words, patience_s)).values()
        # A submission that was refused at once is listed too, as ended before it began.
        return max((seen.id for seen in found if seen.reason != "BadConstraints"), key=int, default=None)

    def job(self, id: str) -> SlurmJob | None:
        """The job as Slurm reports it; None once Slurm has forgotten it."""
        try:
            return read_job(self.ask(["scontrol", "-o", "show", "job", id]))
        except SlurmUnreachable:
            raise
        except MachineRefuses:
            return None

    def accounted_job(self, id: str) -> SlurmJob | None:
        """The job from the accounting database (slurmdbd); None without accounting."""
        try:
            words = ["sacct", "-n", "-P", "-X", "-j", id, "-o", ACCOUNTING_FORMAT]
            return read_accounted(self.ask(words))
        except MachineRefuses:
            return None

    def cancel(self, id: str, patience_s: float) -> None:
        """Cancel a job; no error if it has ended or is forgotten."""
        try:
            self.ask(["scancel", "--quiet", id], patience_s)
        except SlurmUnreachable:
            raise
        except MachineRefuses:
            return

    def ask(self, words: Sequence[str], patience_s: float = 0.0) -> str:
        """Output of a command; retried with growing pauses while Slurm does not answer.

        Raises:
            SlurmUnreachable: no answer within `patience_s`; MachineRefuses: the command failed.
        """
        waited, pause = 0.0, FIRST_PAUSE_S
        while True:
            try:
                return self._once(words)
            except SlurmUnreachable as error:
                if waited >= patience_s:
                    raise unreachable_error(error, patience_s) if patience_s else error from None
            self._pause(pause)
            waited, pause = waited + pause, min(2 * pause, MAX_PAUSE_S)

    def _once(self, words: Sequence[str]) -> str:
        try:
            done = self._run(words)
        except FileNotFoundError:
            raise MachineRefuses(
                f"{words[0]}: not found: a pool by Slurm needs its commands here (Debian: slurm-client)"
            ) from None
        except subprocess.TimeoutExpired:
            raise SlurmUnreachable(f"{words[0]}: no answer in {ANSWER_S:g} s") from None
        if done.status == 0:
            return done.text
        said = " ".join((done.errors or done.output).decode("utf-8", "replace").split())[:300] or done.why
        if _PASSES.search(said):
            raise SlurmUnreachable(f"{words[0]}: {said}")
        raise MachineRefuses(f"{words[0]}: {said}")


def _run(words: Sequence[str]) -> Done:
    """Run a command, without the user's own formats and filters for squeue and sinfo."""
    theirs = ("SQUEUE_", "SINFO_", "SACCT_", "SCONTROL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    ours = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"} if words[0] != "sbatch" else {}
    return run_to_end(tool_words(words), environment=kept | ours, patience_s=ANSWER_S)
