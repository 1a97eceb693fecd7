"""The jobs of one experiment: each measures a part, and its results stay in the part's directory; the experiment's
request, which is its experiment.json before anything was measured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from etude.cluster.distributed.part import Part, job_of, new_part, parts_of, read_part
from etude.cluster.job_loop import EndedJob, JobLoop
from etude.cluster.pool.job import MAX_ATTEMPTS, NODE_UNSUITABLE, RETRYABLE, Pool, PoolSpec
from etude.cluster.pool.job_files import OUTPUT
from etude.cluster.pool.journal import Journal, JournaledPool
from etude.cluster.pool.slurm.commands import SlurmUnreachable
from etude.errors import EDITED, EtudeError, InputError, MachineRefuses
from etude.experiment import monitoring
from etude.experiment.monitoring import Monitoring
from etude.masking import Mask
from etude.results.reader import read_trusted_experiment

Say = Callable[[str], None]
Judge = Callable[[EndedJob[Part], EtudeError | None], EtudeError | None]


class Jobs(JobLoop[Part]):
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
        self._python, self._say = python, say
        super().__init__(JournaledPool(pool, Journal(self.directory)), lambda job: read_part(job.place))
        before = [each.ended for each in self.journal.jobs if each.ended is not None]
        self.unfit.update(node for end in before if end.how in NODE_UNSUITABLE for node in end.nodes[:1])

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts whose jobs are under way."""
        return tuple(self.under_way.values())

    @property
    def ended_parts(self) -> list[Part]:
        """Parts whose jobs have ended, in the order of submission."""
        under = {part.name for part in self.parts}
        return [part for part in parts_of(self.directory) if part.name not in under]

    def begin(self, task: Mapping[str, Any], name: str, nodes: int = 1) -> None:
        """Create a part and submit its job; `name` is the job's label for the user. Raises MachineRefuses."""
        attempt = self.attempt(Part(self.directory, task).key)
        part = new_part(self.directory, {**task, "attempt": attempt})
        self.submit(part, job_of(part, name, nodes=nodes, python=self._python), part.name)

    def run(self, submit: Callable[[], None], judge: Judge = lambda ended, error: error) -> None:
        """Follow the jobs until none is under way. `submit` begins what is next; `judge` receives each end with its
        error, and returns the error that ends the experiment, if any.

        Raises:
            EtudeError: from `judge`, or the pool failed. No job is left running, unless the scheduler does not answer.
        """

        def store(ended: EndedJob[Part]) -> EtudeError | None:
            end = ended.end
            on = f" on {', '.join(end.nodes)}" if end.nodes else ""
            self._say(
                f"{ended.work.name} ({ended.job.name}){on}: {end.how}{f': {end.why}' if end.why else ''}"
            )
            return judge(ended, error_of(ended))

        try:
            if (error := self.follow(submit, store)) is not None:
                raise error
        except (EtudeError, KeyboardInterrupt) as error:
            if not isinstance(error, SlurmUnreachable):
                self.cancel("ended from here")
            raise


def error_of(ended: EndedJob[Part]) -> EtudeError | None:
    """The error that a job reported; MachineRefuses if this pool cannot run it, it lost too many nodes, or it left no
    results. None if it is done, or to be repeated."""
    part, end = ended.work, ended.end
    where = f"{part.name} on {', '.join(end.nodes)}" if end.nodes else part.name
    if ended.again or (end.how == "done" and part.measured):
        return None
    if end.how == "done":
        return MachineRefuses(
            f"{where}: has ended well, but {part.results} has no results: is it shared with that node "
            "(results=copied), and is there space left?"
        )
    if end.how in RETRYABLE:
        return MachineRefuses(
            f"{where}: {end.how}: {end.why or 'no more is known'}; "
            f"this was attempt {part.attempt} of {MAX_ATTEMPTS}"
        )
    reported = part.error() if end.how == "failed" else None
    if reported is not None:
        reported.args = (f"{reported} ({where})",)
        return reported
    status = f" (exit status {end.code})" if end.code else ""
    output = part.place / OUTPUT
    said = f": {output}" if output.exists() else ""
    return MachineRefuses(f"{where}: {end.how}{status}: {end.why or 'see its output'}{said}")


def document_of(
    verb: str,
    name: str,
    plan: Mapping[str, Any],
    digest: str,
    spec: PoolSpec,
    command_line: Sequence[str] = (),
    monitor: Monitoring | None = None,
) -> dict[str, Any]:
    """Members of experiment.json; those of machines and sessions come with the parts."""
    return {
        "name": name,
        "verb": verb,
        "command_line": Mask(plan.get("masks", ())).words(command_line),
        "digest": digest,
        "plan": dict(plan),
        "monitor": monitoring.to_document(monitor),
        "pool": {**asdict(spec), "ended": None, "decisions": []},
    }


def stored_request(directory: Path) -> tuple[dict[str, Any], PoolSpec] | None:
    """The stored request of an existing experiment, and its pool; None if it was started without a pool.

    Raises:
        InputError: it cannot be read.
    """
    found = read_trusted_experiment(directory)
    pool = found.get("pool")
    if pool is None:
        return None
    try:
        members = {name: text for name, text in pool.items() if name not in ("ended", "decisions")}
        spec = PoolSpec(**members)
        names = ("name", "verb", "command_line", "digest", "plan", "monitor", "pool")
        return {name: found[name] for name in names}, spec
    except EDITED as error:
        raise InputError(
            f"{directory}/experiment.json: its pool cannot be read ({error}); was it edited?"
        ) from None


def is_complete(document: Mapping[str, Any]) -> bool:
    """True if every part has ended."""
    return str(document["pool"]["ended"]) == "complete"
