"""Without root the scripts work in a plain directory, and say what is not measured."""

import pytest

from support.laboratory import Lab, field_of

pytestmark = pytest.mark.beside


def set_up(lab: Lab, fs: str = "ext4", **changes: str) -> str:
    return lab.run("fs-setup.sh", fs, **changes).stderr


def test_a_plain_directory_stands_in_for_a_file_system_and_this_is_said(nobody: Lab) -> None:
    said = set_up(nobody)
    (notice,) = nobody.blocks("notice")
    assert "for ext4 (no root)" in said
    assert str(nobody.root) in notice.lines[0]
    assert nobody.mounts() == []
    assert field_of(nobody.blocks("filesystem")[0], "holder") != ""


def test_each_trial_begins_with_an_empty_directory(nobody: Lab) -> None:
    for _ in range(2):
        set_up(nobody)
        assert list(nobody.root.iterdir()) == []
        nobody.run("bash", "-c", f"mkdir {nobody.root}/a; touch {nobody.root}/a/file")
    nobody.run("fs-cleanup.sh", "ext4")
    assert not nobody.root.exists()


def test_a_directory_of_the_user_stays_and_must_be_empty(nobody: Lab) -> None:
    root = nobody.path / "own"
    root.mkdir()
    root.chmod(0o777)
    (root / "thesis").write_text("years of work")
    done = nobody.run("fs-setup.sh", "ext4", check=1, TESTROOT=str(root))
    nobody.run("fs-cleanup.sh", "ext4", TESTROOT=str(root))
    assert f"{root} is not empty" in done.stderr
    assert (root / "thesis").read_text() == "years of work"
    (root / "thesis").unlink()
    set_up(nobody, TESTROOT=str(root))
    nobody.run("bash", "-c", f"touch {root}/made; ln -s {nobody.library} {root}/link")
    nobody.run("fs-cleanup.sh", "ext4", TESTROOT=str(root))
    assert list(root.iterdir()) == []
    assert (nobody.library / "fs-setup.sh").exists()


@pytest.mark.serial
@pytest.mark.needs_root
def test_root_can_ask_for_a_plain_directory(lab: Lab) -> None:
    said = set_up(lab, FSPLAIN="yes")
    assert "(FSPLAIN=yes)" in said
    assert (lab.mounts(), lab.loops()) == ([], [])
    lab.run("fs-cleanup.sh", "ext4", FSPLAIN="yes")
    assert lab.left() == []


@pytest.mark.serial
@pytest.mark.needs_root
def test_root_without_the_right_to_mount_gets_a_plain_directory(lab: Lab) -> None:
    bare = ["setpriv", "--bounding-set=-all", "--"]
    said = lab.run(*bare, "fs-setup.sh", "ext4").stderr
    assert "right to mount" in said
    lab.run(*bare, "fs-cleanup.sh", "ext4")
    assert lab.left() == []


def test_the_file_system_dir_is_a_plain_directory_and_nothing_is_missing(nobody: Lab) -> None:
    assert set_up(nobody, "dir") == ""
    nobody.run("fs-cleanup.sh", "dir")
    assert nobody.blocks("notice") == []


@pytest.mark.needs_program("postmark")
def test_postmark_runs_without_root(nobody: Lab) -> None:
    set_up(nobody)
    nobody.run("postmark.sh", POSTMARK_NUMBER="20", POSTMARK_TRANSACTIONS="20")
    nobody.run("fs-cleanup.sh", "ext4")
    assert nobody.measurements()[0]["status"] == "0"


def test_grep_finds_the_needle_in_a_generated_tree_without_root(nobody: Lab) -> None:
    set_up(nobody)
    nobody.run("grep.sh", "generate", GREP_FILES="60", GREP_FUNCTIONS="2")
    done = nobody.run("grep.sh")
    nobody.run("fs-cleanup.sh", "ext4")
    assert done.stdout == "tree/src/part0/unit30.c\n"
    (row,) = nobody.measurements()
    assert (row["command"].split()[-2:], row["status"]) == (["ETUDE_NEEDLE", "tree"], "0")
    assert not nobody.root.exists()


def test_grep_that_finds_nothing_is_a_failure(nobody: Lab) -> None:
    set_up(nobody)
    nobody.run("grep.sh", "generate", GREP_FILES="2", GREP_FUNCTIONS="1")
    done = nobody.run("grep.sh", check=1, GREP_WORD="no such word")
    nobody.run("fs-cleanup.sh", "ext4")
    assert "grep ended with 1" in done.stderr


@pytest.mark.parametrize("script", ["grep.sh", "readdir.sh"])
def test_a_tree_must_have_been_made(nobody: Lab, script: str) -> None:
    missing = nobody.run(script, check=1)
    set_up(nobody)
    done = nobody.run(script, check=1)
    nobody.run("fs-cleanup.sh", "ext4")
    assert "fs-setup.sh" in missing.stderr
    assert "TESTDIR" in missing.stderr
    assert f"make it by: PRESETUP {script} generate" in done.stderr
