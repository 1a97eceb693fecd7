"""The jobs of one experiment: in the journal before they are in the pool, and adopted from a controller that died."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.workbench.pool.ends import OUTPUT
from etude.workbench.pool.job import ELSEWHERE, Ended, Job
from etude.workbench.pool.journal import Journal
from etude.workbench.pool.pool import Pool
from etude.workbench.pool.slurm.commands import Unanswered
from etude.workbench.spread.part import Part, job_of, new_part, parts_of, read_part

ATTEMPTS = 3
"""What lost its node is begun so many times at most."""
BLAMELESS = ("preempted",)
"""Ends in ELSEWHERE that the node is not to blame for: it is not avoided."""

Say = Callable[[str], None]


class Jobs:
    """Those under way. `say` is told in one line of each that ends."""

    def __init__(
        self,
        directory: Path,
        pool: Pool,
        *,
        python: str = sys.executable,
        say: Say = lambda line: None,
    ) -> None:
        """Of the experiment in `directory`, whose sole writer this process is; adopts what an earlier one left.

        Raises:
            InputError: the journal or a part cannot be read; MachineRefuses: the pool does not take them.
        """
        self.directory = directory.resolve()
        self.pool = pool
        self.journal = Journal(self.directory)
        self._python, self._say = python, say
        self._under: dict[str, tuple[Part, Job]] = {}
        self._avoid: frozenset[str] = frozenset()
        """Of what this controller has seen: somebody may have mended the nodes of an earlier one."""
        for each in self.journal.unfinished():
            part = read_part(each.job.place)
            if each.id is None:
                self._submit(part, each.job)
            else:
                self.pool.adopt(each.id, each.job)
                self._under[each.id] = part, each.job

    @property
    def parts(self) -> tuple[Part, ...]:
        """Of the jobs under way."""
        return tuple(part for part, _ in self._under.values())

    @property
    def over(self) -> list[Part]:
        """Parts whose jobs have ended, in the order in which they were begun."""
        under = {part.name for part in self.parts}
        return [part for part in parts_of(self.directory) if part.name not in under]

    def free(self, nodes: int = 1) -> int:
        """How many more could run at once."""
        return max(self.pool.width(nodes) - len(self._under), 0)

    def begin(self, task: Mapping[str, Any], name: str, nodes: int = 1) -> None:
        """Have a new part done; `name` is for whoever watches."""
        part = new_part(self.directory, task)
        job = job_of(part, name, nodes=nodes, avoid=self._avoid, python=self._python)
        self.journal.submitting(job, part.name, self.pool.clock_s())
        self._submit(part, job)

    def _submit(self, part: Part, job: Job) -> None:
        id = self.pool.submit(job)
        self.journal.submitted(job, id)
        self._under[id] = part, job

    def wait(self, keep: Callable[[], None]) -> list[tuple[Part, Ended]]:
        """Wait until some have ended; `keep` puts what they brought on disk, and only then their ends are noted."""
        found = [(*self._under.pop(each.id), each) for each in self.pool.ended() if each.id in self._under]
        keep()
        for part, job, ended in found:
            self.journal.ended(job, ended)
            self._blame(ended)
            on = f" on {', '.join(ended.nodes)}" if ended.nodes else ""
            self._say(f"{part.name} ({job.name}){on}: {ended.how}{f': {ended.why}' if ended.why else ''}")
        return [(part, ended) for part, _, ended in found]

    def _blame(self, ended: Ended) -> None:
        if ended.how in ELSEWHERE and ended.how not in BLAMELESS:
            self._avoid |= {ended.nodes[0]} if ended.nodes else set()

    def give_up(self, error: BaseException) -> None:
        """The experiment ends by this error: so do its jobs, unless the scheduler is silent. Then they go on."""
        if not isinstance(error, Unanswered):
            self.cancel()

    def cancel(self, *, waiting_only: bool = False) -> None:
        """End those under way, or those that have not begun yet."""
        running = self.pool.running() if waiting_only else frozenset()
        for id in [each for each in self._under if each not in running]:
            _, job = self._under.pop(id)
            self.pool.cancel(id)
            now_s = self.pool.clock_s()
            self.journal.ended(job, Ended(id, "cancelled", None, (), "ended from here", now_s, None, now_s))


def again(part: Part, ended: Ended) -> bool:
    """Whether the job's end says nothing of the part, so that it is to be done again, elsewhere.

    Raises:
        EtudeError: what the job told; MachineRefuses: it cannot be done in this pool, or has lost too many nodes.
    """
    where = f"{part.name} on {', '.join(ended.nodes)}" if ended.nodes else part.name
    if ended.how == "done":
        if not part.measured:
            raise MachineRefuses(
                f"{where}: done, but its results are not in {part.results}: what removed them?"
            )
        return False
    if ended.how in ELSEWHERE:
        attempt = int(part.task.get("attempt", 1))
        if attempt < ATTEMPTS:
            return True
        raise MachineRefuses(
            f"{where}: {ended.how}: {ended.why or 'no more is known'}; this was attempt {attempt} of {ATTEMPTS}"
        )
    told = part.error() if ended.how == "failed" else None
    if told is not None:
        told.args = (f"{told} ({where})",)
        raise told
    status = f" (exit status {ended.code})" if ended.code else ""
    output = part.place / OUTPUT
    said = f": {output}" if output.exists() else ""
    raise MachineRefuses(f"{where}: {ended.how}{status}: {ended.why or 'see what it said'}{said}")
