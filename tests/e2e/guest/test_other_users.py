"""What another user tries against root's Étude, in the test machine: one attempt of a kind, of those that are quick."""

from __future__ import annotations

from support.guest.attacked import attacked
from support.guest.machine import Machine

QUICK = (
    "not_gone_on_with and bench",
    "hers-hosts",
    "probes_of_hers",
    "settings_of_hers",
    "undoing_of_hers",
    "imported_at_boot",
    "mounted_anew",
    "lock_of_the_machine",
    "killed_runs_left",
)


def test_nothing_of_another_user_is_run_or_read(guest: Machine) -> None:
    answer = attacked(guest, ["-k", " or ".join(f"({each})" for each in QUICK)])
    assert answer.status == 0, answer.out[-3000:]
    assert answer.out.count("\nPASSED ") >= len(QUICK)
