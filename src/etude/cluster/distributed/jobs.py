"""The jobs of one experiment: each is in the journal before it is in the pool, and survives a controller that died."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from etude.cluster.distributed.part import Part, job_of, new_part, parts_of, read_part
from etude.cluster.pool.job import MAX_ATTEMPTS, NODE_UNSUITABLE, RETRYABLE, JobEnd, Pool
from etude.cluster.pool.job_status import OUTPUT
from etude.cluster.pool.journal import Journal, JournaledPool
from etude.cluster.pool.slurm.commands import SlurmUnreachable
from etude.errors import MachineRefuses

Say = Callable[[str], None]


class Jobs:
    """Jobs that are under way. `say` receives one line for each job that ends."""

    def __init__(
        self,
        directory: Path,
        pool: Pool,
        *,
        python: str = sys.executable,
        say: Say = lambda line: None,
    ) -> None:
        """Take over the experiment in `directory` as its only writer; adopts the jobs of an earlier controller.

        Raises:
            InputError: the journal or a part cannot be read; MachineRefuses: the pool does not take them.
        """
        self.directory = directory.resolve()
        self.pool, self.journal = pool, Journal(self.directory)
        self._followed = JournaledPool(pool, self.journal)
        self._python, self._say = python, say
        self._under = {str(each.id): read_part(each.job.place) for each in self._followed.recover()}

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts whose jobs are under way."""
        return tuple(self._under.values())

    @property
    def ended_parts(self) -> list[Part]:
        """Parts whose jobs have ended, in the order of submission."""
        under = {part.name for part in self.parts}
        return [part for part in parts_of(self.directory) if part.name not in under]

    def free(self) -> int:
        """Number of further jobs that could run now."""
        return max(self.pool.width() - len(self._under), 0)

    def begin(self, task: Mapping[str, Any], name: str, nodes: int = 1) -> None:
        """Create a part and submit its job; `name` is the job's label for the user. Raises MachineRefuses."""
        part = new_part(self.directory, task)
        job = job_of(part, name, nodes=nodes, avoid=self._avoided(part), python=self._python)
        self._under[self._followed.submit(job, part.name)] = part

    def _avoided(self, part: Part) -> frozenset[str]:
        """First nodes of jobs that those nodes could not run; a later attempt also avoids nodes that were lost."""
        ends = NODE_UNSUITABLE if part.attempt == 1 else NODE_UNSUITABLE | {"node-lost"}
        ended = [each.ended for each in self.journal.jobs if each.ended is not None]
        return frozenset(node for each in ended if each.how in ends for node in each.nodes[:1])

    def wait(self) -> list[tuple[Part, JobEnd]]:
        """Wait until some jobs have ended. Results stay in the directory of their part, and can be merged at any time.

        Raises:
            MachineRefuses: the pool did not answer for too long; its jobs continue.
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
        """Cancel all jobs because of this error, unless the scheduler does not answer: then they continue."""
        if not isinstance(error, SlurmUnreachable):
            self.cancel()

    def cancel(self, *, waiting_only: bool = False) -> None:
        """Cancel the jobs under way, or only those that still wait."""
        running = self.pool.running() if waiting_only else frozenset()
        for id in [each for each in self._under if each not in running]:
            del self._under[id]
            self._followed.cancel(id, "ended from here")


def should_retry(part: Part, ended: JobEnd) -> bool:
    """True if the job's end is no fault of the part, so that it should be repeated on another node.

    Raises:
        EtudeError: the error that the job reported; MachineRefuses: this pool cannot run it, it lost too many nodes,
            or it left no results.
    """
    where = f"{part.name} on {', '.join(ended.nodes)}" if ended.nodes else part.name
    if ended.how == "done":
        if not part.measured:
            raise MachineRefuses(
                f"{where}: has ended well, but {part.results} has no results: is it shared with that node "
                "(results=copied), and is there space left?"
            )
        return False
    if ended.how in RETRYABLE:
        if part.attempt < MAX_ATTEMPTS:
            return True
        raise MachineRefuses(
            f"{where}: {ended.how}: {ended.why or 'no more is known'}; "
            f"this was attempt {part.attempt} of {MAX_ATTEMPTS}"
        )
    told = part.error() if ended.how == "failed" else None
    if told is not None:
        told.args = (f"{told} ({where})",)
        raise told
    status = f" (exit status {ended.code})" if ended.code else ""
    output = part.place / OUTPUT
    said = f": {output}" if output.exists() else ""
    raise MachineRefuses(f"{where}: {ended.how}{status}: {ended.why or 'see its output'}{said}")
