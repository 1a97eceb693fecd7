"""What root may act on: real files, with real owners."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etude.errors import InputError
from etude.osutil.trust import check_trusted


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "a" / "b" / "state.json"
    made.parent.mkdir(parents=True)
    made.write_text("{}")
    made.chmod(0o644)
    return made


def refused(file: Path) -> str:
    with pytest.raises(InputError) as caught:
        check_trusted(file)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"{file}: ")
    return line.removeprefix(f"{file}: ")


def test_a_file_that_only_its_owner_writes_is_trusted(file: Path) -> None:
    check_trusted(file)
    check_trusted(os.path.relpath(file))


def test_a_file_that_is_not_there_is_said_to_be_missing(file: Path) -> None:
    file.unlink()
    assert refused(file) == "no such file"


@pytest.mark.parametrize("mode", [0o602, 0o606, 0o666])
def test_a_file_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert "may write" in refused(file)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444])
def test_who_may_read_it_does_not_matter(file: Path, mode: int) -> None:
    file.chmod(mode)
    check_trusted(file)


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("mode", [0o702, 0o707, 0o777])
def test_a_directory_above_it_that_others_may_write_is_refused(file: Path, mode: int, depth: int) -> None:
    file.parents[depth].chmod(mode)
    assert f" {file.parents[depth]}: " in refused(file)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_sticky_directory_above_it_is_not(file: Path, depth: int) -> None:
    file.parents[depth].chmod(0o1777)
    check_trusted(file)


@pytest.mark.needs_root
def test_a_file_of_another_user_is_refused(file: Path) -> None:
    os.chown(file, 12345, -1)
    assert "12345" in refused(file)


@pytest.mark.needs_root
@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("mode", [0o755, 0o1777], ids=["plain", "sticky"])
def test_a_directory_of_another_user_is_refused(file: Path, depth: int, mode: int) -> None:
    file.parents[depth].chmod(mode)
    os.chown(file.parents[depth], 12345, -1)
    assert refused(file).startswith(f"{file.parents[depth]} ")
    assert "12345" in refused(file)


def test_a_link_is_refused_whatever_it_leads_to(file: Path) -> None:
    link = file.with_name("link.json")
    link.symlink_to(file)
    assert "a link" in refused(link)


@pytest.mark.parametrize("target", ["b", "../a/b", "{}"], ids=["beside", "upwards", "absolute"])
def test_a_linked_directory_is_as_good_as_what_it_leads_to(file: Path, target: str) -> None:
    link = file.parent.with_name("link")
    link.symlink_to(target.format(file.parent))
    check_trusted(link / file.name)
    file.parent.chmod(0o777)
    assert f" {file.parent}: " in refused(link / file.name)


@pytest.mark.needs_root
def test_a_linked_directory_is_refused_where_another_may_turn_the_link(file: Path) -> None:
    link = file.parent.with_name("link")
    link.symlink_to("b")
    os.chown(link, 12345, -1, follow_symlinks=False)
    assert refused(link / file.name).startswith(f"{link} is a link")


def test_links_in_a_circle_are_refused(file: Path) -> None:
    link = file.parent.with_name("link")
    link.symlink_to("link")
    assert "refused" in refused(link / file.name)


def test_only_a_regular_file_is_trusted(file: Path) -> None:
    assert "regular file" in refused(file.parent)
    os.mkfifo(file.with_name("fifo"), 0o600)
    assert "regular file" in refused(file.with_name("fifo"))
    assert refused(file / "below").startswith(f"{file} ")
