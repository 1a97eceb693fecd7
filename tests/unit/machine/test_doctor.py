import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.cli.main import main
from etude.machine.checks import CHECKS, Finding, examine
from support.profiles import examples

Machines = Callable[[str], Path]


def no_time_passes() -> object:
    pass


def found(
    root: Path, pause: Callable[[], object] = no_time_passes, privileged: bool = True
) -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(root, root, pause, privileged)}


@pytest.mark.parametrize(
    ("name", "noisy"),
    [
        (
            "desktop",
            {
                "load average",
                "pressure",
                "frequency governor",
                "turbo",
                "thermal throttling",
                "SMT",
                "swap",
                "huge pages",
                "clock source",
                "NMI watchdog",
            },
        ),
        ("virtual", {"steal time", "virtualisation"}),
        ("arm-server", {"address layout", "isolated CPUs"}),
    ],
)
def test_each_machine_is_noisy_in_its_own_way(machine: Machines, name: str, noisy: set[str]) -> None:
    findings = found(machine(name))
    assert {name for name, finding in findings.items() if finding.verdict == "noisy"} == noisy


def test_what_cannot_be_seen_is_unknown_and_not_good(tmp_path: Path) -> None:
    findings = found(tmp_path)
    by_absence = {"power supply", "huge pages", "NMI watchdog"}  # where they are not, they do no harm
    good = {name for name, finding in findings.items() if finding.verdict == "good"}
    assert good - {"free space"} == by_absence


def test_a_clock_that_a_better_one_could_replace_is_named_with_it(machine: Machines) -> None:
    assert "tsc" in found(machine("desktop"))["clock source"].advice


def test_a_process_that_works_between_the_readings_is_named(machine: Machines) -> None:
    root = machine("desktop")

    def work() -> None:
        # 20 ticks pass on each of 8 CPUs; the browser uses 15 of them, the reader itself 20.
        (root / "proc/stat").write_text("cpu  1040 0 500 10120 20 0 5 0 0 0\n")
        for pid, name, user, system in ((1200, "Web Content (2)", 1015, 200), (4000, "python3", 520, 50)):
            line = f"{pid} ({name}) R 1 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 9 0 0\n"
            (root / f"proc/{pid}/stat").write_text(line)

    finding = found(root, work)["busy processes"]
    assert (finding.state, finding.verdict) == ("Web Content (2) 75%", "noisy")


def test_when_no_process_works_none_is_named(machine: Machines) -> None:
    root = machine("desktop")
    finding = found(root, lambda: (root / "proc/stat").write_text("cpu 1000 0 500 10160 20 0 5 0\n"))
    assert (finding["busy processes"].state, finding["busy processes"].verdict) == ("none", "good")


def test_swapping_now_is_worse_than_swap_in_use(machine: Machines) -> None:
    root = machine("virtual")
    before = found(root)["swap"]
    after = found(root, lambda: (root / "proc/vmstat").write_text("pswpin 3\npswpout 4\n"))["swap"]
    assert before.verdict == "good"
    assert (after.state, after.verdict) == ("swapping now (7 pages)", "noisy")


def test_stolen_time_between_the_readings_is_seen(machine: Machines) -> None:
    root = machine("arm-server")
    steal = found(root, lambda: (root / "proc/stat").write_text("cpu 100 0 50 80030 20 0 5 10\n"))[
        "steal time"
    ]
    assert (steal.state, steal.verdict) == ("25.0% now, 0.01% since boot", "noisy")


@pytest.mark.parametrize(
    ("files", "verdict"),
    [
        ({"BAT0/type": "Battery", "BAT0/status": "Discharging"}, "noisy"),
        ({"BAT0/type": "Battery", "BAT0/status": "Full"}, "good"),
        ({"AC/type": "Mains", "AC/online": "0"}, "noisy"),
        ({"mouse/type": "Battery", "mouse/scope": "Device", "mouse/status": "Discharging"}, "good"),
    ],
    ids=["laptop on battery", "laptop, full", "unplugged", "a mouse's battery"],
)
def test_a_battery_counts_only_if_the_machine_runs_on_it(
    tmp_path: Path, files: dict[str, str], verdict: str
) -> None:
    for name, content in files.items():
        target = tmp_path / "sys/class/power_supply" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content + "\n")
    assert found(tmp_path)["power supply"].verdict == verdict


def test_counters_that_only_root_may_use_are_not_good_for_others(machine: Machines) -> None:
    root = machine("desktop")
    assert found(root, privileged=True)["hardware counters"].verdict == "good"
    assert found(root, privileged=False)["hardware counters"].verdict == "unknown"


@pytest.mark.parametrize("name", ["desktop", "virtual"])
def test_cpus_that_are_not_isolated_are_as_usual(machine: Machines, name: str) -> None:
    assert found(machine(name))["isolated CPUs"].verdict == "good"


def test_piped_findings_are_a_line_each_neither_padded_nor_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(CHECKS)
    assert not [line for line in lines if "  " in line or line != line.strip()]
    verdicts = [line.partition(":")[0] for line in lines]
    assert verdicts == sorted(verdicts, key=["noisy", "unknown", "good"].index)


def test_a_full_file_system_is_noisy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class AlmostFull:
        f_bavail, f_blocks, f_frsize = 1, 1 << 20, 4096

    monkeypatch.setattr("os.statvfs", lambda path: AlmostFull)
    assert found(tmp_path)["free space"].verdict == "noisy"


def test_it_looks_at_this_machine_without_failing_and_says_something_of_everything() -> None:
    findings = examine()
    assert len(findings) == len(CHECKS)
    assert len({finding.name for finding in findings}) == len(CHECKS)
    for finding in findings:
        assert finding.verdict in ("good", "noisy", "unknown")
        assert finding.state
        assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", finding.meaning), "one sentence"
        assert re.fullmatch(r"[^\n]+[^.]", finding.advice), "one line"


def test_it_opens_nothing_for_writing(machine: Machines) -> None:
    root = machine("desktop")
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
    found(root)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()} == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(
    data=st.data(),
    garbage=st.one_of(st.binary(max_size=60), st.text("0189 -.:,()\n", max_size=60).map(str.encode)),
)
def test_no_content_of_a_file_makes_it_raise(machine: Machines, data: st.DataObject, garbage: bytes) -> None:
    root = machine("desktop")
    path = data.draw(st.sampled_from(sorted(path for path in root.rglob("*") if path.is_file())))
    path.write_bytes(garbage)
    assert len(found(root)) == len(CHECKS)
