"""What the memory controller counts as killed, in both versions of cgroups."""

from pathlib import Path

from etude.machine.resources.cgroups import oom_kills


def test_kills_are_summed_over_groups_of_both_versions(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (one / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 9\n")
    (two / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
    assert oom_kills([str(one), str(two), str(tmp_path / "none")]) == 7
