"""A sweep is an ordinary experiment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from etude.analysis.subject import subject_of
from etude.analysis.verdict import verdict
from etude.errors import EtudeError, InputError, MachineRefuses, UsageError
from etude.iolab.points import swept_of
from etude.iolab.run_sweep import bends, refined
from etude.iolab.sweeps import make_plan, make_sweep


def test_each_size_of_each_curve_is_a_test_with_the_first_run_set_aside(laboratory: Any) -> None:
    results = laboratory.sweep(buffers="8..64", curves=["untouched", "touched"], trials=3)
    assert results.names() == (
        *(f"buffer={size}B untouched" for size in (8, 16, 32, 64)),
        *(f"buffer={size}B touched" for size in (8, 16, 32, 64)),
        "buffer=1MiB storage",
    )
    for rows in results.measurements.values():
        assert [m.kept for m in rows] == [False, True, True, True]


def test_the_order_within_a_block_is_random(laboratory: Any) -> None:
    results = laboratory.sweep(buffers="8..1K", trials=4)
    rows = sorted((m for rows in results.measurements.values() for m in rows), key=lambda m: m.start_ns)
    orders = {block: [m.test for m in rows if m.block == block] for block in range(1, 5)}
    assert len({tuple(order) for order in orders.values()}) == 4
    assert all(sorted(order) == sorted(orders[1]) for order in orders.values())


def test_the_rate_is_kept_in_bytes_a_second(laboratory: Any) -> None:
    results = laboratory.sweep(buffers="64K..128K", curves=["touched"], trials=5)
    swept = swept_of(subject_of(results))
    (curve,) = swept.curves
    assert curve.sizes.tolist() == [65536.0, 131072.0]
    assert 0.9 * 8e9 < curve.medians[0] < 8e9
    assert swept.storage is not None
    assert 0.9e9 < swept.storage[0] < 1e9


def test_a_buffer_is_never_larger_than_what_is_transferred(laboratory: Any) -> None:
    plan = make_plan(make_sweep(laboratory.directory, totals="1..8M", buffers="2M"), seed=1)
    buffers = {test.parameters["total"]: test.command[test.command.index("-b") + 1] for test in plan.tests}
    assert buffers["1B"] == "1"
    assert buffers["1MiB"] == str(1 << 20)
    assert buffers["8MiB"] == str(2 << 20)


@pytest.mark.parametrize(("cpu", "cpus"), [(None, None), (0, (0,)), (3, (3,))])
def test_all_runs_are_on_the_cpu_that_is_named(
    laboratory: Any, cpu: int | None, cpus: tuple[int, ...] | None
) -> None:
    plan = make_plan(make_sweep(laboratory.directory, totals="1..8", cpu=cpu), seed=1)
    assert {test.cpus for test in plan.tests} == {cpus}


def test_a_sweep_over_totals_judges_the_whole_program(laboratory: Any) -> None:
    results = laboratory.sweep(totals="1..1K", trials=3)
    assert results.experiment["plan"]["primary"] == "elapsed"
    curves = swept_of(subject_of(results)).curves
    assert [curve.name for curve in curves] == ["static", "dynamic"]
    assert 0.6 < curves[0].medians[0] / curves[1].medians[0] < 0.66


def test_other_verbs_read_it_without_a_warning_about_the_work(laboratory: Any) -> None:
    found = verdict(laboratory.sweep(buffers="8..64", curves=["touched"], trials=3))
    assert found.primary == "bandwidth"
    assert not [w for w in found.warnings if "same work" in str(w)]


def test_a_size_that_does_not_divide_has_a_shorter_last_transfer(laboratory: Any) -> None:
    plan = make_plan(make_sweep(laboratory.directory, buffers=[3000, 4096], totals="16M"), seed=1)
    assert ["--tail" in test.command for test in plan.tests[:2]] == [True, False]


def test_the_data_are_made_once_and_removed(laboratory: Any) -> None:
    plan = make_plan(make_sweep(laboratory.directory, buffers="8..16", curves=["touched"]), seed=1)
    first, second = plan.tests[:2]
    assert first.setup == second.setup
    assert first.setup is not None
    assert "io create" in first.setup
    assert first.cleanup == f"rm -f {first.command[-1]}"


def test_what_goes_around_the_page_cache_has_a_file_of_its_own_and_cools_nothing(laboratory: Any) -> None:
    plan = make_plan(make_sweep(laboratory.directory, buffers="4K", curves=["touched", "direct"]), seed=1)
    touched, direct, storage = plan.tests
    assert direct.command[-1] == storage.command[-1] != touched.command[-1]
    ways = [test.command[test.command.index("--cool") + 1] for test in plan.tests]
    assert ways == ["warm", "none", "none"]


def test_sizes_that_cannot_go_around_the_page_cache_have_no_storage_beside_them(laboratory: Any) -> None:
    plan = make_plan(
        make_sweep(laboratory.directory, buffers="8..64", totals="1000", curves=["touched"]), seed=1
    )
    assert [test.parameters["curve"] for test in plan.tests] == ["touched"] * 4


def test_buffers_above_the_total_are_that_total_once(laboratory: Any) -> None:
    what = make_sweep(laboratory.directory, buffers="512..8K", totals="1K", curves=["touched"], storage=False)
    assert [test.parameters["buffer"] for test in make_plan(what, seed=1).tests] == ["512B", "1KiB"]
    assert make_sweep(laboratory.directory, buffers=4096).buffers == (4096,)


def test_a_file_that_is_there_is_only_read(laboratory: Any) -> None:
    file = laboratory.directory / "data"
    file.write_bytes(bytes(1 << 20))
    plan = make_plan(make_sweep(file, buffers="8..16", totals="1M", storage=False), seed=1)
    assert {(test.setup, test.cleanup, test.command[-1]) for test in plan.tests} == {(None, None, str(file))}


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"buffers": "8..16", "totals": "1M,2M"}, UsageError, "buffer total"),
        ({"curves": ["touched", "touched"]}, UsageError, "name"),
        ({"curves": ["storage=-d"]}, UsageError, "storage"),
        ({"curves": ["nosuch"]}, UsageError, "NAME=OPTIONS, untouched"),
        ({"curves": ["a='--touch"]}, UsageError, "quotation"),
        ({"trials": 1}, UsageError, "2"),
        ({"curves": []}, UsageError, "one"),
        ({"curves": ["x=-b 1M"]}, UsageError, "-b"),
        ({"curves": ["x=--touch -n3"]}, UsageError, "-n3"),
        ({"buffers": [0, 4096]}, UsageError, "1"),
        ({"where": "pipe"}, InputError, "again"),
        ({"where": "pipe", "operation": "write"}, UsageError, "made"),
        ({"operation": "erase"}, UsageError, "read write"),
        ({"where": "short"}, InputError, "5 16MiB"),
        ({"where": "short", "operation": "write"}, UsageError, "made"),
        ({"where": "nosuch"}, MachineRefuses, "directory"),
        ({"totals": "1T"}, MachineRefuses, "2TiB"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    laboratory: Any, options: dict[str, Any], error: type[EtudeError], text: str
) -> None:
    (laboratory.directory / "short").write_text("short")
    os.mkfifo(laboratory.directory / "pipe")
    where = laboratory.directory / options.pop("where", ".")
    with pytest.raises(error) as raised:
        make_plan(make_sweep(where, **options), seed=1)
    why = str(raised.value).replace(str(laboratory.directory), "")
    assert [word for word in text.split() if word not in why] == []
    assert "\n" not in str(raised.value)


def test_refined_sizes_lie_beside_the_bend_and_are_measured_in_a_sitting_of_their_own(
    laboratory: Any,
) -> None:
    what = make_sweep(laboratory.directory, buffers="64K..16M", curves=["touched"], trials=5)
    results = laboratory.run(what)
    assert {bends(results, what, 2)[0], bends(results, what, 2)[-1]} <= {741376, 1482752, 2965504}
    before = {name: len(rows) for name, rows in results.measurements.items()}
    more = refined(results, what, 2, make_engine=laboratory.world.make_engine)
    fresh = set(more.names()) - set(before)
    assert len(fresh) == 2
    assert all(sum(m.kept for m in more.measurements[name]) == 5 for name in fresh)
    assert all({m.sitting for m in more.measurements[name]} == {2} for name in fresh)
    assert all(sum(m.kept for m in more.measurements[name]) == 5 for name in before)
    (curve,) = swept_of(subject_of(more)).curves
    assert curve.sizes.size == 11


def test_a_frame_has_the_sizes_in_bytes(laboratory: Any) -> None:
    frame = laboratory.sweep(buffers="512,4K", curves=["touched"], trials=2).frame()
    assert {"buffer", "buffer_bytes", "curve", "bandwidth"} <= set(frame.columns)
    assert set(frame.filter(frame["buffer"] == "4KiB")["buffer_bytes"]) == {4096.0}


def test_results_of_another_kind_are_no_sweep(tmp_path: Path) -> None:
    from etude.results.reader import load_results
    from support.builders import measurement, results_directory

    found = load_results(results_directory(tmp_path / "r", {"a": [measurement()]}, plan={"kind": "script"}))
    with pytest.raises(InputError, match="is no sweep"):
        swept_of(subject_of(found))


@pytest.mark.parametrize(("operation", "call"), [("read", "pread"), ("write", "pwrite")])
@pytest.mark.parametrize("chosen", ["pread", "random", "mine=--method=pread --touch"])
def test_a_curve_with_offsets_uses_the_call_of_the_operation(
    laboratory: Any, operation: str, call: str, chosen: str
) -> None:
    what = make_sweep(laboratory.directory, buffers="4K", curves=[chosen], operation=operation, storage=False)
    (test,) = make_plan(what, seed=1).tests
    told = " ".join(test.command).replace("=", " ")
    assert f"--method {call} " in told


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_a_rate_that_cannot_be_is_one_line(laboratory: Any, rate: float) -> None:
    results = laboratory.sweep(buffers="4K..8K", curves=["touched"], trials=2)
    last = results.measurements["buffer=8KiB touched"][-1]
    last.metrics["bandwidth"][0] = rate
    with pytest.raises(InputError, match="bandwidth of 'buffer=8KiB touched'"):
        swept_of(subject_of(results))


@pytest.mark.parametrize("size", ["0", "-4KiB", "x", "", None, 7, "nan", "4 s", "8KiB"])
def test_a_size_that_cannot_be_is_one_line(laboratory: Any, size: object) -> None:
    results = laboratory.sweep(buffers="4K..8K", curves=["touched"], trials=2)
    results.experiment["tests"][0]["parameters"]["buffer"] = size
    with pytest.raises(InputError, match="buffer"):
        swept_of(subject_of(results))
