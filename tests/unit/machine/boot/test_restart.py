"""Restarting the machine: what is asked of whom, and what is refused beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.errors import MachineRefuses
from etude.machine.boot import restart, unit

MENU = """\
if [ "${next_entry}" ] ; then set default="${next_entry}"; fi
menuentry 'A' --id a { linux /vmlinuz-1 root=/dev/vda1 ro; initrd /initrd-1; }
menuentry 'B' --id b { linux /vmlinuz-1 $more; }
menuentry 'C' --id c { linux /vmlinuz-1 ro; initrd /initrd-1 /initrd-1; }
menuentry 'D' --id d { linux /gone ro; }
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with systemd and GRUB, on which somebody goes on at boot."""
    made = tmp_path / "root"
    for name, text in {
        "boot/grub/grub.cfg": MENU,
        "boot/vmlinuz-1": "",
        "boot/initrd-1": "",
        "proc/sys/kernel/osrelease": "1",
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz-1 root=/dev/vda2 quiet",
        "run/systemd/system/": "",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).mkdir() if name.endswith("/") else (made / name).write_text(text)
    unit.install(made, lambda *words: "")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda program: f"/sbin/{program}")
    return made


def commanded(root: Path, entry: str | None, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    calls: list[list[str]] = []
    monkeypatch.setattr("os.sync", lambda: calls.append(["sync"]))
    restart.restart(entry, root, lambda *words: calls.append(list(words)))
    return calls


def test_a_restart_syncs_first_and_is_then_commanded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restart.check(None, root)
    assert commanded(root, None, monkeypatch) == [["sync"], ["systemctl", "reboot"]]


def test_an_entry_is_set_for_one_boot(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restart.check("B", root)
    assert commanded(root, "B", monkeypatch) == [["sync"], ["grub-reboot", "b"], ["systemctl", "reboot"]]


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (["systemctl", "reboot"], ["systemctl", "reboot"]),
        (["reboot", "shutdown"], ["reboot"]),
        (["shutdown"], ["shutdown", "-r", "now"]),
        ([], None),
    ],
)
def test_the_first_way_that_is_there_is_taken(
    root: Path, monkeypatch: pytest.MonkeyPatch, there: list[str], words: list[str] | None
) -> None:
    monkeypatch.setattr("shutil.which", lambda program: program if program in there else None)
    assert restart.restart_words(root) == words


def test_systemctl_is_left_alone_where_systemd_does_not_run(root: Path) -> None:
    (root / "run/systemd/system").rmdir()
    assert restart.restart_words(root) == ["reboot"]


def refusal(root: Path, entry: str | None = None) -> str:
    with pytest.raises(MachineRefuses) as caught:
        restart.check(entry, root)
    return str(caught.value)


def test_only_root_restarts_a_machine(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "become root" in refusal(root)


def test_a_restart_behind_which_nobody_goes_on_is_refused(root: Path) -> None:
    unit.remove(root, lambda *words: "")
    assert refusal(root).endswith("etude boot-resume install")


def test_an_unknown_entry_is_refused_before_anything_runs(root: Path) -> None:
    assert "'E'" in refusal(root, "E")


def test_a_menu_that_takes_no_entry_for_one_boot_is_refused(root: Path) -> None:
    (root / "boot/grub/grub.cfg").write_text(MENU.replace("next_entry", "saved"))
    assert "GRUB_DEFAULT=saved" in refusal(root, "A")


def test_a_missing_program_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    assert all(program in refusal(root) for program in ("systemctl", "reboot", "shutdown"))
    monkeypatch.setattr("shutil.which", lambda program: program if program == "systemctl" else None)
    assert "grub2-common" in refusal(root, "A")
    monkeypatch.setenv("ETUDE_RESTART", "kexec")
    assert "kexec-tools" in refusal(root)


def test_kexec_starts_an_entry_s_kernel_with_its_command_line(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETUDE_RESTART", "kexec")
    restart.check("A", root)
    boot = root / "boot"
    assert commanded(root, "A", monkeypatch) == [
        ["sync"],
        [
            "kexec",
            "-a",
            "-l",
            f"{boot}/vmlinuz-1",
            "--command-line=root=/dev/vda1 ro",
            f"--initrd={boot}/initrd-1",
        ],
        ["systemctl", "kexec"],
    ]


def test_kexec_without_an_entry_starts_what_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETUDE_RESTART", "kexec")
    restart.check(None, root)
    (load, start) = commanded(root, None, monkeypatch)[1:]
    assert load == ["kexec", "-a", "-l", f"{root}/boot/vmlinuz-1", "--command-line=root=/dev/vda2 quiet"]
    assert start == ["systemctl", "kexec"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [("B", "does not name"), ("C", "several initrds"), ("D", "not found"), ("E", "none of that")],
)
def test_what_kexec_cannot_start_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, entry: str, said: str
) -> None:
    monkeypatch.setenv("ETUDE_RESTART", "kexec")
    assert said in refusal(root, entry)


def test_kexec_is_refused_where_the_kernel_forbids_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETUDE_RESTART", "kexec")
    (root / "proc/sys/kernel/kexec_load_disabled").write_text("1\n")
    assert "kexec_load_disabled" in refusal(root)


@pytest.mark.parametrize("entry", [None, "kernel 'B'"])
def test_a_hook_restarts_the_machine_and_knows_what_is_to_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str | None
) -> None:
    monkeypatch.setenv("ETUDE_RESTART", f'printf %s "$ETUDE_ENTRY" > {tmp_path}/entry')
    restart.check(entry, tmp_path)
    restart.restart(entry, tmp_path)
    assert (tmp_path / "entry").read_text() == (entry or "")


@pytest.mark.parametrize(
    ("line", "said"), [("echo no power >&2; exit 3", "no power"), ("exit 3", "exit status 3")]
)
def test_a_hook_that_fails_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    monkeypatch.setenv("ETUDE_RESTART", line)
    with pytest.raises(MachineRefuses, match=f"the hook failed: {said}"):
        restart.restart(None, tmp_path)
