"""What happens at boot, without a machine that boots."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from etude.errors import CommandFailed, EtudeError, InputError
from etude.machine.boot import record
from etude.machine.boot.resume import BootState, ResumeCommand, boot_status, replace_process, resume
from support.golden import Golden

SETTLED = BootState(3.0, True, 0.1, {"cpu": 0.0}, 0)


def boot(settle: Any = None) -> ResumeCommand:
    return resume(lambda line: None, settle or (lambda most_s: SETTLED))


def test_what_was_registered_is_gone_on_with_where_it_was_and_as_it_was(kept: Any) -> None:
    kept.register()
    found = boot()
    was = record.load()
    assert found.words == [*was.program, "run", str(kept.state)]
    assert found.directory == os.getcwd()
    added = {"ETUDE_SETTLED": json.dumps({"waited_s": 3.0, "settled": True, "load": 0.1, "pressure": {"cpu": 0.0}, "jobs": 0, "why": ""})}  # noqa: E501  # fmt: skip
    assert found.environment == was.environment | added


def test_a_boot_is_counted_before_anything_else_happens(kept: Any) -> None:
    kept.register()
    seen = []

    def settle(most_s: float) -> BootState:
        assert most_s == 180
        seen.append(record.load().boots)
        return SETTLED

    boot(settle)
    boot(settle)
    assert seen == [1, 2]


def test_the_fourth_boot_without_progress_gives_up_for_good(kept: Any) -> None:
    kept.register()
    for _ in range(3):
        boot()
        kept.register()  # as a script does that restarts the machine itself
    with pytest.raises(CommandFailed, match=r"\b3 boots") as caught:
        boot(lambda most_s: pytest.fail("nothing is waited for"))
    assert "\n" not in str(caught.value)
    assert not record.path().exists()
    assert record.given_up_path().exists()


def test_progress_begins_the_count_anew(kept: Any) -> None:
    kept.register()
    for lines in range(9):
        kept.come_to({"counter": 1}, lines // 3)
        boot()
    assert record.load().boots == 3


def spoil_mode(kept: Any) -> None:
    kept.state.chmod(0o666)


def spoil_owner(kept: Any) -> None:
    os.chown(kept.state, 12345, -1)


def spoil_directory(kept: Any) -> None:
    kept.directory.chmod(0o777)


def spoil_link(kept: Any) -> None:
    kept.state.rename(kept.directory / "real.json")
    kept.state.symlink_to("real.json")


def spoil_text(kept: Any) -> None:
    kept.state.write_text("{}")


def spoil_presence(kept: Any) -> None:
    kept.state.unlink()


@pytest.mark.needs_root
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_mode, "may write"),
        (spoil_owner, "12345"),
        (spoil_directory, "others"),
        (spoil_link, "a link"),
        (spoil_text, "no state"),
        (spoil_presence, "no such file"),
    ],
    ids=["mode", "owner", "directory", "link", "text", "presence"],
)
def test_a_state_that_cannot_be_believed_is_refused_and_the_record_stays(
    kept: Any, spoil: Any, said: str
) -> None:
    kept.register()
    spoil(kept)
    before = record.path().read_bytes()
    with pytest.raises(InputError, match=said) as caught:
        boot()
    assert "\n" not in str(caught.value)
    assert record.path().read_bytes() == before


def test_what_cannot_be_run_is_one_line(kept: Any, tmp_path: Path) -> None:
    for what in (
        ResumeCommand(["/nosuch"], {}, "/"),
        ResumeCommand(["/bin/true"], {}, str(tmp_path / "nosuch")),
    ):
        with pytest.raises(InputError, match="cannot be run"):
            replace_process(what)


def test_how_things_stand_is_said_without_changing_them(kept: Any, tmp_path: Path, golden: Golden) -> None:
    def said() -> str:
        told = boot_status()
        known = replace(told, restart="RESTART", entries=[], no_entries=None)  # of this machine
        return "\n".join(known.lines()).replace(str(tmp_path), "TMP")

    nothing, nothing_said = boot_status(), said()
    assert (nothing.waits, nothing.refused, nothing.given_up) == (None, None, None)
    kept.register()
    before = record.path().read_bytes()
    waits, waits_said = boot_status(), said()
    assert waits.waits is not None
    assert (waits.waits.results, waits.waits.boots, waits.waits.most_boots) == (str(kept.directory), 0, 3)
    kept.state.chmod(0o666)
    refused, refused_said = boot_status(), said()
    assert refused.refused is not None
    assert record.path().read_bytes() == before
    record.give_up()
    assert boot_status().given_up == str(record.given_up_path())
    golden("\n\n".join((nothing_said, waits_said, refused_said, said())))


def test_only_errors_of_ours_are_met_by_a_record_of_any_kind(kept: Any) -> None:
    kept.register()
    for text in ("", "null", "[]", '{"format": "etude-resume", "version": 1}'):
        record.path().write_text(text)
        with pytest.raises(EtudeError):
            boot()
