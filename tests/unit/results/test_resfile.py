"""A `.res` file as results: whole trials are kept, and nothing that was cut short passes for one."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.results.model import Measurement, check_measurement, to_line
from etude.results.reader import check_experiment, load_results
from etude.results.res import format_measurement, format_snapshot, read_res
from etude.results.results import Results
from etude.results.trials import series_of_columns, trials_of_results
from support.builders import measurement, series_of_rows


def block(epoch: int, elapsed: float = 1.0, thread: int = 1, **more: object) -> str:
    members = {"thread": thread, "epoch": epoch, "command": "true", "elapsed": elapsed, "status": 0} | more
    return "[measurement]\n" + "".join(f"{name} = {value}\n" for name, value in members.items())


def read(directory: Path, *text: str, name: str = "ext2:1.res") -> Results:
    file = directory / name
    file.write_text("".join(text))
    return load_results(file)


def elapsed(results: Results) -> list[float]:
    (rows,) = results.measurements.values()
    return series_of_rows(rows).sample("elapsed").tolist()


def test_a_file_is_one_test_of_its_name(tmp_path: Path) -> None:
    results = read(tmp_path, "preamble\n[disk]\nhda\n", block(1), block(2, 3.0), "[others]\ncron = 1\n")
    assert results.names() == ("ext2:1",)
    assert elapsed(results) == [1.0, 3.0]
    assert results.torn == ()
    assert results.experiment["plan"] == {"kind": "res", "primary": "elapsed", "check_output": "first"}
    assert len(results.experiment["sittings"]) == 1
    check_experiment(results.experiment)
    assert results.frame()["trial"].to_list() == [1, 2]


def test_threads_and_commands_of_an_epoch_are_one_trial(tmp_path: Path) -> None:
    results = read(
        tmp_path,
        *(block(e, float(10 * t + c), t) for e in (1, 2) for t in (1, 2) for c in (1, 2)),
    )
    assert elapsed(results) == [43.0, 43.0]
    assert results.experiment["tests"][0]["workers"] == 2


def test_threads_may_stand_one_after_the_other_in_the_file(tmp_path: Path) -> None:
    results = read(tmp_path, *(block(e, float(e + t), t) for t in (1, 2) for e in (1, 2, 3)))
    assert elapsed(results) == [3.0, 4.0, 5.0]


def test_epochs_that_begin_again_are_another_run_appended(tmp_path: Path) -> None:
    results = read(tmp_path, *(block(e, float(e)) for e in (1, 2, 3, 1, 2)))
    (rows,) = results.measurements.values()
    assert elapsed(results) == [1.0, 2.0, 3.0, 1.0, 2.0]
    assert [m.trial for m in rows] == [1, 2, 3, 4, 5]
    assert [m.sitting for m in rows] == [1, 1, 1, 2, 2]
    assert len(results.experiment["sittings"]) == 2


def test_blocks_without_an_epoch_are_trials_in_their_order(tmp_path: Path) -> None:
    text = "".join(block(0, float(i)).replace("epoch = 0\n", "") for i in (5, 6))
    assert elapsed(read(tmp_path, text)) == [5.0, 6.0]


def test_a_last_block_cut_at_any_byte_is_left_out_and_reported(tmp_path: Path) -> None:
    before, last = block(1, 1.5) + block(2, 2.5), block(3, 123.456)
    for length in range(len(last) + 1):
        results = read(tmp_path, before, last[:length])
        whole = length > last.index("status = ") + len("status = ")
        begun = length >= len("[measurement]")
        assert elapsed(results) == [1.5, 2.5, *([123.456] if whole else [])]
        assert bool(results.torn) == (begun and not whole)
        if results.torn:
            assert results.torn == (str(tmp_path / "ext2:1.res"),)
            (left_out,) = results.experiment["left_out"]
            assert left_out["line"] == 13
            assert "status" in left_out["reason"]


def test_a_trial_that_lacks_a_thread_is_not_kept(tmp_path: Path) -> None:
    results = read(tmp_path, block(1), block(1, 2.0, 2), block(2), block(3), block(3, 4.0, 2))
    (rows,) = results.measurements.values()
    assert elapsed(results) == [2.0, 4.0]
    assert [m.why for m in rows] == [None, None, "incomplete", None, None]


@pytest.mark.parametrize("lines", [2, 3, 4, 5, 6])
def test_a_command_cut_short_in_the_middle_spoils_its_trial_only(tmp_path: Path, lines: int) -> None:
    cut = "".join(block(2, 9.0).splitlines(keepends=True)[: lines - 1])
    results = read(
        tmp_path, *(block(e, float(e)) for e in (1, 1, 2)), cut, *(block(3, 3.0) for _ in range(2))
    )
    assert elapsed(results) == [2.0, 6.0]
    assert [entry["line"] for entry in results.experiment["left_out"]] == [19]


def test_a_block_that_makes_no_sense_spoils_its_trial_and_is_named(tmp_path: Path) -> None:
    results = read(tmp_path, block(1), block(2, thread=0), block(3), block(4, elapsed="soon"))  # type: ignore[arg-type]
    assert elapsed(results) == [1.0, 1.0]
    thread, time = (entry["reason"] for entry in results.experiment["left_out"])
    assert "thread is 0" in thread
    assert {"elapsed", "'soon'"} <= set(time.split())


def test_a_command_that_failed_is_kept_and_known(tmp_path: Path) -> None:
    results = read(tmp_path, block(1), block(2, 5.0, status=3))
    (rows,) = results.measurements.values()
    assert elapsed(results) == [1.0, 5.0]
    assert [m.failed for m in rows] == [False, True]


def test_what_was_set_aside_stays_aside(tmp_path: Path) -> None:
    results = read(tmp_path, block(0, 9.0, set_aside="first run"), block(1))
    (rows,) = results.measurements.values()
    assert elapsed(results) == [1.0]
    assert (rows[0].kept, rows[0].why) == (False, "first run")


def test_host_and_boot_are_those_of_our_snapshot(tmp_path: Path) -> None:
    snapshot = format_snapshot({"system": {"hostname": "box", "boot_id": "b7"}})
    (row,) = read(tmp_path, snapshot, block(1)).measurements["ext2:1"]
    assert (row.host, row.boot_id) == ("box", "b7")


def test_what_we_write_of_an_experiment_we_read(tmp_path: Path) -> None:
    def made(trial: int, worker: int) -> Measurement:
        values = {"elapsed": [0.1 * trial + worker, "s"], "user": [0.3, "s"], "peak_memory": [4096, "B"]}
        return measurement(test="t", trial=trial, worker=worker, host="", boot_id="", metrics=values)

    rows = tuple(made(trial, worker) for trial in (1, 2, 3) for worker in (0, 1))
    results = read(tmp_path, *map(format_measurement, rows), name="t.res")
    assert results.measurements == {"t": rows}


def test_a_file_without_a_measurement_has_no_trials(tmp_path: Path) -> None:
    assert read(tmp_path, "[disk]\nhda\n").measurements == {"ext2:1": ()}


@pytest.mark.parametrize("text", ["", "\n", "name,elapsed\na,1\n", "[measurement\n"])
def test_what_is_no_results_file_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="no results file"):
        read(tmp_path, text)


def test_a_file_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.res: no results here"):
        load_results(tmp_path / "x.res")
    with pytest.raises(InputError, match=os.strerror(errno.ENAMETOOLONG)):
        load_results(tmp_path / ("x" * 300 + ".res"))


def test_a_directory_that_is_called_res_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "x.res").mkdir()
    with pytest.raises(InputError, match=r"x\.res: .*experiment\.json"):
        load_results(tmp_path / "x.res")


PIECES = [
    b"[measurement]\n",
    b"thread = 1\n",
    b"thread = 2\n",
    b"epoch = 1\n",
    b"epoch = 2\n",
    b"epoch = x\n",
]
PIECES += [
    b"elapsed = 1.5\n",
    b"elapsed = x\n",
    b"status = 0\n",
    b"status = 9",
    b"[x]\n",
    b"a = 1 B\n",
    b"\xff",
    b"\r\n",
]


@given(st.binary() | st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))
def test_any_bytes_are_results_or_an_input_error(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "x.res"
        file.write_bytes(data)
        try:
            results = read_res(file)
        except InputError:
            return
        check_experiment(results.experiment)
        for m in results.measurements["x"]:
            check_measurement(to_line(m))
        results.frame()
        series_of_columns(trials_of_results(results).columns)
