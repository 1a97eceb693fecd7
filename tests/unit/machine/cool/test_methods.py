"""What is said of caches, and what is refused, without touching any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import MachineRefuses
from etude.machine.cool.dataset import LOOP_FILE_SLACK_BYTES, Residency, difference_from_declared
from etude.machine.cool.methods import Cooled, cool
from etude.machine.cool.steps import check_remountable, remount
from etude.osutil.mounts import parsed
from etude.results.model import CACHE_WAYS, check_measurement, to_line
from support.builders import measurement

sizes = st.integers(0, 10**9)
COLD = [way for way in CACHE_WAYS if way not in ("none", "warm")]


@pytest.mark.parametrize("way", COLD)
@given(sizes, sizes, sizes)
def test_a_cold_data_set_is_one_of_which_a_hundredth_at_most_is_in_memory(
    way: str, size: int, own: int, below: int
) -> None:
    seen = Residency(3, size, min(own, size), 0, below)
    wrong = difference_from_declared(way, seen)
    assert (wrong is None) == (
        size == 0 or min(own, size) + max(below - LOOP_FILE_SLACK_BYTES, 0) <= 0.01 * size
    )
    if wrong and below > min(own, size):
        assert "loop device" in wrong


@given(sizes, sizes)
def test_a_warm_data_set_is_one_of_which_nine_tenths_are_in_memory(size: int, own: int) -> None:
    seen = Residency(3, size, min(own, size), None, 5 * size)
    assert (difference_from_declared("warm", seen) is None) == (size == 0 or min(own, size) / size >= 0.9)


def test_what_was_done_is_a_member_of_the_row() -> None:
    seen = Residency(2, 1000, 10, 1, 7, 2)
    before = Residency(2, 1000, 990, 2)
    done = Cooled("chill", "chill", None, 1.25, (), before, seen, "wrong", {"allocated_bytes": 9})
    row = to_line(measurement(cache=done.members()))
    check_measurement(row)
    assert row["cache"] == {
        "declared": "chill",
        "performed": "chill",
        "cooling_s": 1.25,
        "wrong": "wrong",
        "resident_before_bytes": 990,
        "files": 2,
        "bytes": 1000,
        "resident_bytes": 10,
        "names_cached": 1,
        "inodes_cached": 2,
        "backing_resident_bytes": 7,
        "chilled_bytes": 9,
    }


def test_what_was_not_done_says_why() -> None:
    assert Cooled("drop", None, "excluded").members() == {
        "declared": "drop",
        "performed": None,
        "why": "excluded",
    }


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("20 1 254:0 / / rw - ext4 /dev/vda rw", ": / "),
        ("20 1 0:30 / /mnt/t rw - tmpfs tmpfs rw", "/mnt/t"),
        ("20 1 7:0 /sub /mnt/b rw - ext4 /dev/loop0 rw", "/sub"),
    ],
)
def test_what_would_not_come_back_is_not_unmounted(line: str, refusal: str) -> None:
    with pytest.raises(MachineRefuses, match=refusal):
        check_remountable(next(parsed(line)))


def test_remount_asks_which_file_system() -> None:
    with pytest.raises(MachineRefuses, match="which file system"):
        remount([])


def test_a_reboot_is_not_done_by_the_way_itself() -> None:
    with pytest.raises(MachineRefuses, match="CACHE reboot"):
        cool("reboot", None)
