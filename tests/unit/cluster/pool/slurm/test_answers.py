"""What Slurm 22.05.8 printed for a cluster of three nodes, and what no Slurm prints."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.pool.slurm import answers
from etude.cluster.pool.slurm.answers import SlurmJob

QUEUE = """\
2|FAILED|n3|1795389327|1795389327|NonZeroExitCode
8|PENDING||N/A|N/A|PartitionConfig
12|PENDING||N/A|N/A|ReqNodeNotAvail, UnavailableNodes:n3
3|PENDING||N/A|N/A|JobHeldUser
1|RUNNING|n[1-2]|1795389327|1826925327|None|a | b
"""

JOB = (
    "JobId=1 JobName=etude-1 UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 Nice=0 Account=(null)"
    " QOS=(null) JobState=TIMEOUT Reason=TimeLimit Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 Reboot=0"
    " ExitCode=0:15 RunTime=00:00:29 TimeLimit=00:01:00 TimeMin=N/A SubmitTime=1795389326 StartTime=1795389327"
    " EndTime=1795389356 Deadline=N/A ReqB:S:C:T=0:0:*:* ReqNodeList=(null) ExcNodeList=(null) NodeList=n[1-2]"
    " BatchHost=n1 NumNodes=2 Comment=hi JobState=COMPLETED ExitCode=0:0 StdErr=/dev/null Power= \n"
)

NODES = """\
n1|idle|bench*|(null)
n1|idle|high|(null)
n2|allocated*|bench*|epyc,ib
n3|drained|bench*|(null)
n4|idle~|bench*|(null)
n5|mixed$|bench*|(null)
"""

# From the manual page of sacct: accounting needs a database, which was not started for this.
ACCOUNTED = """\
1|NODE_FAIL|1:0|1795389327|1795389356|n[1-2]
1|CANCELLED by 1000|0:15|1795389400|1795389456|n1
"""


def test_squeue_tells_of_each_job() -> None:
    seen = answers.queue(QUEUE)
    assert list(seen) == ["2", "8", "12", "3", "1"]
    assert seen["1"] == SlurmJob(
        "1", "RUNNING", "None", ("n1", "n2"), 1795389327.0, 1826925327.0, comment="a | b"
    )
    assert seen["12"].reason == "ReqNodeNotAvail, UnavailableNodes:n3"
    assert seen["3"].started_s is None


def test_scontrol_is_believed_and_not_a_comment_within_it() -> None:
    assert answers.job(JOB) == SlurmJob(
        "1", "TIMEOUT", "TimeLimit", ("n1", "n2"), 1795389327.0, 1795389356.0, None
    )
    assert answers.job("slurm_load_jobs error: Invalid job id specified") is None


def test_sinfo_tells_which_nodes_would_run_a_job() -> None:
    nodes = answers.nodes(NODES)
    assert [(node.name, node.usable) for node in nodes if node.is_default] == [
        ("n1", True),
        ("n2", False),
        ("n3", False),
        ("n4", True),
        ("n5", False),
    ]
    assert nodes[2].features == {"epyc", "ib"}
    assert nodes[1].partition == "high"
    assert nodes[0].partition == "bench"


def test_sacct_tells_of_the_last_run() -> None:
    assert answers.accounted_job(ACCOUNTED) == SlurmJob(
        "1", "CANCELLED", "", ("n1",), 1795389400.0, 1795389456.0
    )
    assert answers.accounted_job("") is None


@given(st.text(alphabet="|0123456789PENDIG n[]-,=:/\n()", max_size=200) | st.text(max_size=100))
def test_any_answer_is_read(text: str) -> None:
    answers.queue(text)
    answers.job(text)
    answers.nodes(text)
    answers.accounted_job(text)


names = st.from_regex(r"[a-z]{1,4}[0-9]{0,3}", fullmatch=True)
words = st.from_regex(r"[A-Z][A-Za-z]{0,10}", fullmatch=True)
seconds = st.none() | st.integers(0, 10**11).map(float)


@given(
    st.lists(
        st.builds(
            SlurmJob,
            st.integers(1, 10**9).map(str),
            words,
            st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="|"), max_size=20),
            st.lists(names, max_size=4).map(tuple),
            seconds,
            seconds,
            st.none(),
            st.text(st.characters(exclude_categories=("C", "Z")), max_size=20),
        ),
        unique_by=lambda seen: seen.id,
        max_size=6,
    )
)
def test_what_squeue_wrote_is_what_is_read(jobs: list[SlurmJob]) -> None:
    def shown(time: float | None) -> str:
        return "N/A" if time is None else f"{time:.0f}"

    lines = [
        "|".join(
            (s.id, s.state, ",".join(s.nodes), shown(s.started_s), shown(s.ended_s), s.reason, s.comment)
        )
        for s in jobs
    ]
    assert list(answers.queue("\n".join(lines) + "\n").values()) == jobs
