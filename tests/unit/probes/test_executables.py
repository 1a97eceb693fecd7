"""Probes that are executables: what they are given, and what is made of what they print."""

from __future__ import annotations

import math
import os
import subprocess
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.probes.executables import Executable, find_executables, parse_output
from etude.probes.probe import Context, ProbeFailed, Reading
from etude.probes.run_probes import RunProbes
from support.golden import Golden


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run(path: Path, context: Context | None = None) -> Reading:
    probe, context = Executable(path, "p"), context or Context()
    return probe.end(probe.start(context), context)


def test_every_executable_of_every_directory_is_found_in_order(tmp_path: Path) -> None:
    program(tmp_path / "b/probes.d/two", "")
    program(tmp_path / "b/probes.d/one.sh", "")
    program(tmp_path / "b/probes.d/.hidden", "")
    program(tmp_path / "b/probes.d/one.sh~", "")
    program(tmp_path / "b/probes.d/plain", "").chmod(0o644)
    (tmp_path / "b/probes.d/directory").mkdir()
    program(tmp_path / "a/probes.d/one", "")
    (tmp_path / "c").mkdir()
    library = [tmp_path / "b", str(tmp_path / "a"), tmp_path / "b", tmp_path / "c", tmp_path / "nowhere"]
    assert [probe.name for probe in find_executables(library)] == ["one", "two", "one-2"]


def test_the_end_sees_what_the_start_left_and_both_see_the_environment(tmp_path: Path) -> None:
    text = """
case $1 in
start) echo "$APTEST $APEPOCH $HOME" > "$APPROBESTATE"; echo 'ignored = 1' ;;
end) echo "[seen]"; cat "$APPROBESTATE"; echo "$TESTDIR" ;;
esac"""
    context = Context(environment={"APTEST": "t", "APEPOCH": "7", "TESTDIR": "/d"})
    (block,) = run(program(tmp_path / "p", text), context).blocks
    assert (block.name, block.lines) == ("seen", (f"t 7 {os.environ['HOME']}", "/d"))


def test_each_has_a_state_of_its_own_which_is_empty_at_each_start(tmp_path: Path) -> None:
    text = """
case $1 in
start) wc -c < "$APPROBESTATE" >> SEEN; echo x >> "$APPROBESTATE" ;;
end) echo "size = $(wc -c < "$APPROBESTATE") B" ;;
esac""".replace("SEEN", str(tmp_path / "seen"))
    for name in ("a", "b"):
        program(tmp_path / "probes.d" / name, text.replace("size", f"size_{name}"))
    probing = RunProbes(find_executables([tmp_path]))
    for _ in range(2):
        probing.start()
        metrics, _, notes = probing.end(Context())
        assert (metrics["size_a"], metrics["size_b"], notes) == ([2, "B"], [2, "B"], [])
    assert (tmp_path / "seen").read_text().split() == ["0"] * 4


@pytest.mark.parametrize("fails", ["nowhere", "start", "end"])
def test_its_state_is_gone_with_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    probe = Executable(program(tmp_path / "p", f'test -w "$APPROBESTATE" && [ "$1" != {fails} ]'), "p")
    expected = nullcontext() if fails == "nowhere" else pytest.raises(ProbeFailed, match="returned 1")
    with expected:
        state = probe.start(Context())
        assert list(tmp_path.glob("etude-probe-*")) == [state]
        probe.end(state, Context())
    assert list(tmp_path.glob("etude-probe-*")) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo no >&2; echo such disk >&2; exit 3", "3: such disk"),
        ("kill -KILL $$", "signal 9"),
        ("printf '\\377' >&2; exit 1", "1: �"),
    ],
)
def test_one_that_fails_says_why(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ProbeFailed) as caught:
        run(program(tmp_path / "p", text))
    assert "p start`" in str(caught.value)
    assert str(caught.value).endswith(why)


def test_one_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    path = program(tmp_path / "p", "")
    path.write_text("#!/nowhere/sh\n")
    with pytest.raises(ProbeFailed, match="No such file"):
        run(path)


def test_one_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over once all of it runs."""
    pids = tmp_path / "pids"
    path = program(tmp_path / "p", f"sleep 600 & echo $! $$ > {pids}; exec sleep 600")
    communicate = subprocess.Popen.communicate

    def wait(program: subprocess.Popen[bytes], input: None = None, timeout: float | None = None) -> object:
        until = time.monotonic() + 30
        while not (pids.exists() and pids.read_text().endswith("\n")) and time.monotonic() < until:
            time.sleep(0.01)
        return communicate(program, input, None if timeout is None else 0.001)

    monkeypatch.setattr(subprocess.Popen, "communicate", wait)
    with pytest.raises(ProbeFailed, match=r"p start` .*0\.2 s"):
        Executable(path, "p", timeout_s=0.2).start(Context())
    for pid in map(int, pids.read_text().split()):
        until = time.monotonic() + 30  # killed and not waited for: the shell's child is init's by then
        while _runs(pid) and time.monotonic() < until:
            time.sleep(0.01)
        assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Whether it lives; init may be slow to collect what is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_it_prints_is_metrics_and_blocks() -> None:
    output = """
trace = 4096 B
rate=2.5e3 1/s
plain = 7
none = null J no meter here

[files]
a = 1
 b
[empty]
"""
    reading = parse_output(output)
    assert reading.metrics == {
        "trace": [4096, "B"],
        "rate": [2500.0, "1/s"],
        "plain": [7, "1"],
        "none": [None, "J", "no meter here"],
    }
    assert [(b.name, b.lines) for b in reading.blocks] == [("files", ("a = 1", " b")), ("empty", ())]
    assert reading.notes == ()


def test_a_measurement_is_no_block_of_a_probe_but_more_metrics() -> None:
    reading = parse_output("[measurement]\nx = 1 B\n")
    assert (reading.metrics, reading.blocks) == ({"x": [1, "B"]}, ())


def test_lines_that_make_no_sense_are_left_out_with_a_note(golden: Golden) -> None:
    reading = parse_output("x = 1\nhello\ny = many\n = 3\nz\nq = nan\n")
    assert reading.metrics == {"x": [1, "1"]}
    assert len(reading.notes) == 4
    assert [
        word in note for word, note in zip(("'hello'", "many", "", " 2 "), reading.notes, strict=True)
    ] == [True] * 4
    golden("\n".join(reading.notes))


@given(st.text() | st.text("[]ab =12.e\n\0nul\udcff"))
@example("\x00 = 1\n[a]\r\n")
def test_no_output_makes_it_raise(output: str) -> None:
    for value, _, *reason in parse_output(output).metrics.values():
        assert reason if value is None else math.isfinite(value)


names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
values = st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)


@given(
    metrics=st.dictionaries(names, st.tuples(values, st.sampled_from(["s", "B", "1", "1/s", "µs"]))),
    blocks=st.lists(st.tuples(names, st.lists(st.from_regex(r"[a-z =0-9]{1,12}", fullmatch=True)))),
)
def test_what_is_printed_is_read_back(
    metrics: dict[str, tuple[float, str]], blocks: list[tuple[str, list[str]]]
) -> None:
    blocks = [(name, lines) for name, lines in blocks if name != "measurement"]
    text = "".join(f"{name} = {value!r} {unit}\n" for name, (value, unit) in metrics.items())
    text += "".join(f"[{name}]\n" + "".join(f"{line}\n" for line in lines) for name, lines in blocks)
    reading = parse_output(text)
    assert reading.metrics == {name: list(metric) for name, metric in metrics.items()}
    assert [(b.name, list(b.lines)) for b in reading.blocks] == blocks
    assert reading.notes == ()
