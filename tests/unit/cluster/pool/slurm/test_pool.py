"""The pool and its commands above a Slurm that answers from a script, in time that only the test lets pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from etude.cluster.pool.job import Job, JobEnd, PoolSpec
from etude.cluster.pool.slurm.commands import Slurm, SlurmUnreachable
from etude.cluster.pool.slurm.pool import ANSWER_S, SHARED_S, SlurmPool
from etude.errors import MachineRefuses
from etude.osutil.commands import Done
from support.golden import Golden

SILENT = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


@dataclass
class FakeSlurm:
    """`jobs` by id are lines of squeue without the id. A job that is submitted waits for its turn."""

    jobs: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    nodes: str = "n1|idle|bench*|(null)\nn2|allocated|bench*|epyc\nn3|down*|bench*|(null)\n"
    accounting: str | None = None
    shown: str = ""
    now_s: float = 1000.0
    asked: list[Sequence[str]] = field(default_factory=list)
    silence: str = SILENT
    silent: dict[str, int] = field(default_factory=dict)
    """How often each command is not answered; below 0: ever. `lost` of sbatch: the job is made, and the answer lost."""

    def run(self, words: Sequence[str]) -> Done:
        self.asked.append(words)
        left = self.silent.get(words[0], 0)
        if left:
            self.silent[words[0]] = left - 1
            return Done(1, b"", self.silence.encode())
        answer = getattr(self, words[0])(words)
        if answer is None:
            return Done(1, b"", b"error: no")
        return Done(0, answer.encode(), b"")

    def sinfo(self, words: Sequence[str]) -> str:
        return "" if "--partition=none" in words else self.nodes

    def squeue(self, words: Sequence[str]) -> str:
        name = next((word.removeprefix("--name=") for word in words if word.startswith("--name=")), None)
        ids = [id for id in self.jobs if name is None or self.names.get(id) == name]
        return "".join(f"{id}|{self.jobs[id]}\n" for id in ids)

    def sbatch(self, words: Sequence[str]) -> str:
        id = str(len(self.names) + 1)
        self.names[id] = next(
            word.removeprefix("--job-name=") for word in words if word.startswith("--job-name=")
        )
        self.jobs[id] = "PENDING||N/A|N/A|Priority"
        return f"{id}\n"

    def scontrol(self, words: Sequence[str]) -> str | None:
        return self.shown or None

    def sacct(self, words: Sequence[str]) -> str | None:
        return self.accounting

    def scancel(self, words: Sequence[str]) -> str:
        self.jobs[words[-1]] = "CANCELLED||N/A|N/A|None"
        return ""

    def pause(self, seconds: float) -> None:
        self.now_s += seconds

    def count(self, command: str) -> int:
        return sum(words[0] == command for words in self.asked)


@pytest.fixture
def fake() -> FakeSlurm:
    return FakeSlurm()


def a_pool(fake: FakeSlurm, spec: PoolSpec | None = None) -> SlurmPool:
    return SlurmPool(spec or PoolSpec("slurm"), Slurm(fake.run, fake.pause), lambda: fake.now_s, fake.pause)


def a_job(tmp_path: Path, name: str = "a") -> Job:
    return Job(name, ("true",), tmp_path / name, tmp_path)


def write_end(job: Job, how: str, code: int | None = 0, why: str = "") -> None:
    members = {"how": how, "code": code, "why": why, "nodes": "n[1-2]", "began_s": 1001.0, "ended_s": 1002.0}
    (job.place / "end.json").write_text(json.dumps(members))


def only(ends: Sequence[JobEnd]) -> JobEnd:
    (end,) = ends
    return end


def test_one_call_follows_all_jobs(fake: FakeSlurm, tmp_path: Path) -> None:
    pool = a_pool(fake)
    jobs = [a_job(tmp_path, f"j{number}") for number in range(50)]
    for job in jobs:
        pool.submit(job)
    asked = len(fake.asked)
    assert pool.ended(timeout_s=60.0) == ()
    assert {words[0] for words in fake.asked[asked:]} == {"squeue"}
    assert fake.count("squeue") <= 60
    for job in jobs:
        write_end(job, "done")
    assert len(pool.ended()) == 50
    assert pool.ended() == ()


def test_a_jobs_own_end_is_enough(fake: FakeSlurm, tmp_path: Path) -> None:
    pool, job = a_pool(fake), a_job(tmp_path)
    pool.submit(job)
    fake.jobs.clear()
    write_end(job, "done")
    end = only(pool.ended())
    assert (end.how, end.nodes, end.started_s, end.ended_s) == ("done", ("n1", "n2"), 1001.0, 1002.0)


def test_a_failure_is_slurms_where_slurm_has_ended_it(fake: FakeSlurm, tmp_path: Path) -> None:
    pool, job = a_pool(fake), a_job(tmp_path)
    pool.submit(job)
    write_end(job, "failed", 137)
    fake.jobs["1"] = "PREEMPTED|n1|1001|1003|None"
    assert only(pool.ended()).how == "preempted"


def test_a_failure_is_its_own_where_slurm_says_no_more(fake: FakeSlurm, tmp_path: Path) -> None:
    pool, job = a_pool(fake), a_job(tmp_path)
    pool.submit(job)
    write_end(job, "failed", 3)
    (job.place / "output").write_text("one\nit broke\n\n")
    fake.jobs["1"] = "FAILED|n1|1001|1003|NonZeroExitCode"
    end = only(pool.ended())
    assert (end.how, end.code) == ("failed", 3)
    assert end.why.endswith("3: it broke")


def test_an_end_that_is_not_seen_yet_is_waited_for(fake: FakeSlurm, tmp_path: Path) -> None:
    pool, job = a_pool(fake), a_job(tmp_path)
    pool.submit(job)
    fake.jobs["1"] = "COMPLETED|n1|1001|1003|None"
    assert pool.ended(timeout_s=SHARED_S / 2) == ()
    write_end(job, "done")
    assert only(pool.ended()).started_s == 1001.0


def test_a_node_so_full_that_it_could_not_say_so_is_told_by_its_status(
    fake: FakeSlurm, tmp_path: Path
) -> None:
    pool = a_pool(fake)
    pool.submit(a_job(tmp_path))
    fake.jobs["1"] = "FAILED|n1|1001|1003|NonZeroExitCode"
    fake.shown = "JobId=1 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=123:0 NodeList=n1 "
    end = only(pool.ended())
    assert (end.how, end.nodes) == ("no-space", ("n1",))


def test_a_forgotten_job_without_an_end_was_lost(fake: FakeSlurm, tmp_path: Path) -> None:
    pool = a_pool(fake)
    pool.submit(a_job(tmp_path))
    fake.jobs.clear()
    assert only(pool.ended()).how == "node-lost"


def test_accounting_remembers_what_slurmctld_has_forgotten(fake: FakeSlurm, tmp_path: Path) -> None:
    pool = a_pool(fake)
    pool.submit(a_job(tmp_path))
    fake.jobs.clear()
    fake.accounting = "1|TIMEOUT|0:0|1001|1003|n2\n"
    end = only(pool.ended())
    assert (end.how, end.nodes) == ("out-of-time", ("n2",))


def test_a_held_job_is_withdrawn_and_told(fake: FakeSlurm, tmp_path: Path) -> None:
    pool = a_pool(fake)
    pool.submit(a_job(tmp_path))
    fake.jobs["1"] = "PENDING||N/A|N/A|JobHeldUser"
    end = only(pool.ended())
    assert (end.how, end.nodes) == ("held", ())
    assert "(JobHeldUser)" in end.why
    assert fake.jobs["1"].startswith("CANCELLED")


def test_what_may_never_come_is_waited_for_with_patience(fake: FakeSlurm, tmp_path: Path) -> None:
    pool = a_pool(fake, PoolSpec("slurm", patience_s=120.0))
    pool.submit(a_job(tmp_path, "a"))
    pool.submit(a_job(tmp_path, "b"))
    fake.jobs["1"] = "RUNNING|n1|1001|N/A|None"
    fake.jobs["2"] = "PENDING||N/A|N/A|ReqNodeNotAvail, UnavailableNodes:n3"
    assert pool.ended(timeout_s=600.0) == ()
    assert pool.running() == {"1"}
    fake.jobs["1"] = "TIMEOUT|n1|1001|1600|TimeLimit"
    assert only(pool.ended()).how == "out-of-time"
    assert only(pool.ended()).how == "held"
    assert fake.now_s >= 1720.0


def test_a_suspended_job_is_ended_since_its_numbers_are_void(fake: FakeSlurm, tmp_path: Path) -> None:
    pool = a_pool(fake)
    pool.submit(a_job(tmp_path))
    fake.jobs["1"] = "SUSPENDED|n1|1001|N/A|None"
    assert only(pool.ended()).how == "preempted"
    assert fake.count("scancel") == 1


def test_a_cancelled_job_is_not_told_of(fake: FakeSlurm, tmp_path: Path) -> None:
    pool = a_pool(fake)
    pool.cancel(pool.submit(a_job(tmp_path)))
    assert pool.ended() == ()


def test_a_submission_whose_answer_was_lost_is_not_made_again(fake: FakeSlurm, tmp_path: Path) -> None:
    pool, made = a_pool(fake), fake.sbatch

    def lost(words: Sequence[str]) -> str:
        made(words)
        raise TimeoutExpired(words[0], 60.0)

    fake.sbatch = lost  # type: ignore[method-assign]
    assert pool.submit(a_job(tmp_path)) == "1"
    assert fake.count("sbatch") == 1


def test_a_submission_that_never_came_is_made_again(fake: FakeSlurm, tmp_path: Path) -> None:
    fake.silent["sbatch"] = 2
    assert a_pool(fake).submit(a_job(tmp_path)) == "1"
    assert fake.count("sbatch") == 3


def test_a_place_is_one_job_also_for_the_next_controller(fake: FakeSlurm, tmp_path: Path) -> None:
    job = a_job(tmp_path)
    id = a_pool(fake).submit(job)
    record = json.loads((job.place / "job.json").read_text())
    for known in (id, None):  # None: it died before it had noted the answer
        (job.place / "job.json").write_text(json.dumps(record | {"id": known}))
        assert a_pool(fake).submit(job) == id
    assert fake.count("sbatch") == 1


@pytest.mark.parametrize(
    "silence",
    [
        SILENT,
        "squeue: error: Munge encode failed: Failed to access socket: No such file or directory",
        "slurm_load_jobs error: Protocol authentication error",
        "slurm_load_jobs error: Invalid authentication credential",
    ],
)
def test_slurm_or_munge_may_be_silent_for_a_while(fake: FakeSlurm, tmp_path: Path, silence: str) -> None:
    fake.silence = silence
    pool, job = a_pool(fake), a_job(tmp_path)
    pool.submit(job)
    fake.silent["squeue"] = 20
    fake.jobs["1"] = "NODE_FAIL|n1|1001|1003|NodeDown"
    assert only(pool.ended()).how == "node-lost"


def test_a_slurm_that_stays_silent_is_told_with_what_to_do(
    fake: FakeSlurm, tmp_path: Path, golden: Golden
) -> None:
    pool = a_pool(fake)
    pool.submit(a_job(tmp_path))
    fake.silent["squeue"] = -1
    with pytest.raises(MachineRefuses, match=f"{ANSWER_S:.0f} s.*connect failure") as error:
        pool.ended()
    golden(str(error.value))
    assert ANSWER_S <= fake.now_s - 1000.0 <= 2 * ANSWER_S


def test_ends_are_told_also_when_slurm_stays_silent(fake: FakeSlurm, tmp_path: Path) -> None:
    pool, jobs = a_pool(fake), [a_job(tmp_path, "a"), a_job(tmp_path, "b")]
    for job in jobs:
        pool.submit(job)
    fake.silent["squeue"] = -1
    assert pool.ended(timeout_s=ANSWER_S - 20.0) == ()
    fake.now_s += 60.0
    write_end(jobs[0], "done")
    assert only(pool.ended()).how == "done"
    with pytest.raises(MachineRefuses, match="not answered"):
        pool.ended()


def test_a_held_job_that_cannot_be_withdrawn_yet_is_told_once_it_is(fake: FakeSlurm, tmp_path: Path) -> None:
    pool = a_pool(fake)
    pool.submit(a_job(tmp_path))
    fake.jobs["1"] = "PENDING||N/A|N/A|JobHeldUser"
    fake.silent["scancel"] = 2
    assert only(pool.ended()).how == "held"
    assert fake.count("scancel") == 3


def test_a_slurm_that_is_not_there_is_told_at_once(fake: FakeSlurm) -> None:
    fake.silent["sinfo"] = -1
    with pytest.raises(MachineRefuses, match="scontrol ping"):
        a_pool(fake)
    assert fake.now_s - 1000.0 <= 60.0


def test_a_partition_or_nodes_that_are_not_there_are_told(fake: FakeSlurm) -> None:
    with pytest.raises(MachineRefuses, match="'none'"):
        a_pool(fake, PoolSpec("slurm", partition="none"))
    with pytest.raises(MachineRefuses, match=r"\(constraint=arm\)"):
        a_pool(fake, PoolSpec("slurm", constraint="arm"))


def test_the_width_is_of_nodes_that_are_up_and_fit(fake: FakeSlurm) -> None:
    assert (a_pool(fake).width(), a_pool(fake).width(2), a_pool(fake).width(3)) == (2, 1, 1)
    assert a_pool(fake, PoolSpec("slurm", nodes_at_once=1)).width() == 1
    assert a_pool(fake, PoolSpec("slurm", constraint="epyc")).width() == 1


def test_a_refusal_is_not_tried_again(fake: FakeSlurm, tmp_path: Path) -> None:
    fake.sbatch = lambda words: None  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(MachineRefuses, match=r"^a: .*sbatch: error"):
        a_pool(fake).submit(a_job(tmp_path))
    assert fake.count("sbatch") == 1


@pytest.mark.parametrize(
    "said",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "slurm_load_jobs error: Zero Bytes were transmitted or received",
        "slurm_load_jobs error: Slurm backup controller in standby mode",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
        "connect: Connection refused",
        "Unable to create job record, try again",
    ],
)
def test_what_passes_is_told_from_what_does_not(said: str) -> None:
    slurm = Slurm(lambda words: Done(1, b"", said.encode()), lambda seconds: None)
    with pytest.raises(SlurmUnreachable):
        slurm.ask(["squeue"])


def test_without_slurms_commands_it_says_which_package_has_them() -> None:
    def none(words: Sequence[str]) -> Done:
        raise FileNotFoundError(words[0])

    with pytest.raises(MachineRefuses, match=r"sinfo: .*slurm-client"):
        SlurmPool(PoolSpec("slurm"), Slurm(none))


def excluded(fake: FakeSlurm) -> list[str]:
    return [word for words in fake.asked for word in words if word.startswith("--exclude=")]


def test_nodes_are_avoided_as_long_as_there_are_others_that_fit(fake: FakeSlurm, tmp_path: Path) -> None:
    a_pool(fake).submit(replace(a_job(tmp_path, "a"), avoid=frozenset(("n1", "n2"))))
    assert excluded(fake) == ["--exclude=n1,n2"]
    a_pool(fake, PoolSpec("slurm", constraint="epyc")).submit(
        replace(a_job(tmp_path, "b"), avoid=frozenset(("n1", "n2")))
    )
    assert excluded(fake) == ["--exclude=n1,n2"]


def test_what_no_node_fits_is_said_by_its_keys(fake: FakeSlurm) -> None:
    with pytest.raises(MachineRefuses, match=r"\(constraint=epyc, nodelist=n1\)"):
        a_pool(fake, PoolSpec("slurm", constraint="epyc", nodelist="n1"))


def test_a_slurm_that_is_silent_from_the_beginning_is_said_once(fake: FakeSlurm) -> None:
    fake.silent["sinfo"] = -1
    with pytest.raises(MachineRefuses) as told:
        a_pool(fake)
    assert str(told.value).count("answer") == 1
    assert SILENT in str(told.value)
