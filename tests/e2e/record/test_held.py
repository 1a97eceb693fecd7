"""For how long the recorder held a thread is in the trace; a script leaves it out (from_trace in the crate script)."""

import pytest

from etude.iotrace.reader import Trace
from support.recordings import record

pytestmark = [pytest.mark.beside]

CHILDREN = 8


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A shell and programs that it starts, one after the other: each maps libraries."""
    each = "; ".join(["cat /etc/passwd > /dev/null"] * CHILDREN)
    return record("sh", "-c", each, at=tmp_path_factory.mktemp("held") / "t").trace()


def spans(trace: Trace) -> list[tuple[int, int, int]]:
    """Thread, beginning and end of each."""
    held = [each for each in trace.meta if each["what"] == "held"]
    return [(each["thread"], begin, begin + ns) for each in held for begin, ns in each["spans"]]


def test_a_thread_is_held_where_it_forks_and_where_it_maps_code(trace: Trace) -> None:
    processes = {each["thread"]: each["process"] for each in trace.meta if each["what"] == "thread"}
    assert {processes[thread] for thread, _, _ in spans(trace)} == set(range(1 + CHILDREN))
    ends = set((trace.start_ns + trace.duration_ns)[trace.call == trace.names.index("mmap")].tolist())
    from_mappings = [begin for _, begin, _ in spans(trace) if begin in ends]
    assert len(from_mappings) >= 1 + CHILDREN


def test_it_is_within_no_call(trace: Trace) -> None:
    begins, ends = trace.start_ns, trace.start_ns + trace.duration_ns
    for thread, begin, end in spans(trace):
        own = trace.thread == thread
        # A signal may come within a call: that of a child's end, which the shell waits for.
        inside = own & (begins < end) & (ends > begin) & (trace.call == trace.names.index("mmap"))
        assert not inside.any()
