"""The jobs of one experiment: in the journal before they are in the pool, and adopted from a controller that died."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from etude.cluster.distributed.part import Part, job_of, new_part, parts_of, read_part
from etude.cluster.pool.job import ELSEWHERE, TRIES, UNFIT, JobEnd, Pool
from etude.cluster.pool.job_status import OUTPUT
from etude.cluster.pool.journal import Journal, JournaledPool
from etude.cluster.pool.slurm.commands import Unanswered
from etude.errors import MachineRefuses

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
        self.pool, self.journal = pool, Journal(self.directory)
        self._followed = JournaledPool(pool, self.journal)
        self._python, self._say = python, say
        self._under = {str(each.id): read_part(each.job.place) for each in self._followed.take_up()}

    @property
    def parts(self) -> tuple[Part, ...]:
        """Of the jobs under way."""
        return tuple(self._under.values())

    @property
    def over(self) -> list[Part]:
        """Parts whose jobs have ended, in the order in which they were begun."""
        under = {part.name for part in self.parts}
        return [part for part in parts_of(self.directory) if part.name not in under]

    def free(self) -> int:
        """How many more could run at once."""
        return max(self.pool.width() - len(self._under), 0)

    def begin(self, task: Mapping[str, Any], name: str, nodes: int = 1) -> None:
        """Have a new part done; `name` is for whoever watches. Raises MachineRefuses."""
        part = new_part(self.directory, task)
        job = job_of(part, name, nodes=nodes, avoid=self._avoided(part), python=self._python)
        self._under[self._followed.submit(job, part.name)] = part

    def _avoided(self, part: Part) -> frozenset[str]:
        """The client's nodes of jobs that could not be run there; what is begun again also avoids those that died."""
        ends = UNFIT if part.attempt == 1 else UNFIT | {"node-lost"}
        ended = [each.ended for each in self.journal.jobs if each.ended is not None]
        return frozenset(node for each in ended if each.how in ends for node in each.nodes[:1])

    def wait(self) -> list[tuple[Part, JobEnd]]:
        """Wait until some have ended. What a part brought stays in it: to be merged whenever it is.

        Raises:
            MachineRefuses: the pool is silent for too long; jobs go on.
        """
        found = []
        for submitted, ended in self._followed.ended():
            part = self._under.pop(ended.id)
            self._followed.conclude(submitted, ended)
            on = f" on {', '.join(ended.nodes)}" if ended.nodes else ""
            why = f": {ended.why}" if ended.why else ""
            self._say(f"{part.name} ({submitted.job.name}){on}: {ended.how}{why}")
            found.append((part, ended))
        return found

    def give_up(self, error: BaseException) -> None:
        """The experiment ends by this error: so do its jobs, unless the scheduler is silent. Then they go on."""
        if not isinstance(error, Unanswered):
            self.cancel()

    def cancel(self, *, waiting_only: bool = False) -> None:
        """End those under way, or those that have not begun yet."""
        running = self.pool.running() if waiting_only else frozenset()
        for id in [each for each in self._under if each not in running]:
            del self._under[id]
            self._followed.cancel(id, "ended from here")


def begin_again(part: Part, ended: JobEnd) -> bool:
    """Whether the job's end says nothing of the part, so that it is to be done again, elsewhere.

    Raises:
        EtudeError: what the job told; MachineRefuses: it cannot be done in this pool, has lost too many nodes, or has
            left nothing.
    """
    where = f"{part.name} on {', '.join(ended.nodes)}" if ended.nodes else part.name
    if ended.how == "done":
        if not part.measured:
            raise MachineRefuses(
                f"{where}: has ended well, but {part.results} has no results: is it shared with that node "
                "(results=copied), and is there space left?"
            )
        return False
    if ended.how in ELSEWHERE:
        if part.attempt < TRIES:
            return True
        raise MachineRefuses(
            f"{where}: {ended.how}: {ended.why or 'no more is known'}; this was attempt {part.attempt} of {TRIES}"
        )
    told = part.error() if ended.how == "failed" else None
    if told is not None:
        told.args = (f"{told} ({where})",)
        raise told
    status = f" (exit status {ended.code})" if ended.code else ""
    output = part.place / OUTPUT
    said = f": {output}" if output.exists() else ""
    raise MachineRefuses(f"{where}: {ended.how}{status}: {ended.why or 'see what it said'}{said}")
