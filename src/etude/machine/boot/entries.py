"""Entries of the boot loader, from a grub.cfg or from systemd-boot, and a check which of them is running."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from etude.errors import MachineRefuses
from etude.machine import tree
from etude.osutil.commands import tool

GRUB_CONFIGURATIONS = ("boot/grub/grub.cfg", "boot/grub2/grub.cfg")
LOADER_INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
MAX_MENU_BYTES = 16 << 20
KERNEL_NAME = re.compile(r"(?:vmlinuz|vmlinux|linux|kernel|bzImage|Image)-(.+?)(?:\.efi)?$")
NOT_COMPARED = ("BOOT_IMAGE=", "initrd=")
"""Options that boot loaders add to a command line by themselves."""


@dataclass(frozen=True)
class Entry:
    """A bootable entry. `key`: the loader's own id; `names`: names that a user may give."""

    loader: str
    key: str
    names: tuple[str, ...]
    kernel: str | None = None
    options: str | None = None
    initrd: tuple[str, ...] = ()
    release: str | None = None
    """Release of the kernel, if its file name contains it."""

    @property
    def title(self) -> str:
        return self.names[0]


def loader(root: Path = Path("/")) -> str | None:
    """`systemd-boot` or `grub`, whichever started the machine; None for any other."""
    told = (tree.read_text(root, LOADER_INFO) or "").replace("\0", "")
    if "systemd-boot" in told:
        return "systemd-boot"
    return "grub" if grub_configuration(root) is not None else None


def grub_configuration(root: Path = Path("/")) -> Path | None:
    """Path of GRUB's menu."""
    return next((root / name for name in GRUB_CONFIGURATIONS if (root / name).is_file()), None)


def entries(root: Path = Path("/"), ask: Callable[..., str] = tool) -> list[Entry]:
    """All entries of the boot loader; empty for an unknown loader.

    Raises:
        MachineRefuses: it cannot be read.
    """
    kind = loader(root)
    if kind == "systemd-boot":
        return of_bootctl(ask("bootctl", "list", "--json=short"))
    where = grub_configuration(root)
    if kind is None or where is None:
        return []
    text = tree.read_text(root, str(where.relative_to(root)), MAX_MENU_BYTES)
    if text is None:
        raise MachineRefuses(f"{where}: cannot be read; become root")
    return of_grub(text)


def of_grub(text: str) -> list[Entry]:
    """The entries of a grub.cfg."""
    return [
        Entry(
            loader="grub",
            key=_path(item.ids),
            names=tuple(dict.fromkeys([item.titles[-1], item.ids[-1], _path(item.titles), _path(item.ids)])),
            kernel=item.kernel,
            options=item.options,
            initrd=item.initrd,
            release=release_of(item.kernel),
        )
        for item in menu(text)
    ]


def of_bootctl(said: str) -> list[Entry]:
    """The entries in the output of `bootctl list --json=short`.

    Raises:
        MachineRefuses: it is not of that form.
    """
    try:
        found = json.loads(said)
        return [_of_bootctl(member) for member in found]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MachineRefuses(f"bootctl list: its answer is not understood ({error})") from None


def _of_bootctl(member: dict[str, object]) -> Entry:
    name = str(member["id"])
    titles = [str(member[key]) for key in ("showTitle", "title") if member.get(key)]
    initrd = member.get("initrd")
    kernel = str(member["linux"]) if member.get("linux") else None
    return Entry(
        loader="systemd-boot",
        key=name,
        names=tuple(dict.fromkeys([*titles, name, name.removesuffix(".conf")])),
        kernel=kernel,
        options=str(member["options"]) if member.get("options") is not None else None,
        initrd=tuple(map(str, initrd)) if isinstance(initrd, list) else (),
        release=str(member["version"]) if member.get("version") else release_of(kernel),
    )


def release_of(kernel: str | None) -> str | None:
    """The release in a kernel's file name, such as /boot/vmlinuz-6.1.0-40-amd64."""
    match = KERNEL_NAME.match((kernel or "").rpartition("/")[2])
    return match[1] if match else None


def find(name: str, offered: list[Entry]) -> Entry:
    """The entry of this title or id, or path of titles or of ids separated by `>`.

    Raises:
        MachineRefuses: no entry matches, or several do.
    """
    found = [entry for entry in offered if name in entry.names]
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(repr(entry.key) for entry in found)
        raise MachineRefuses(f"boot entry {name!r}: there are {len(found)} of that name; choose one: {keys}")
    known = ", ".join(repr(entry.title) for entry in offered)
    raise MachineRefuses(
        f"boot entry {name!r}: the boot loader has none of that name; it has {known}"
        if known
        else f"boot entry {name!r}: no boot loader is known here (GRUB's grub.cfg, or systemd-boot); "
        "set ETUDE_RESTART to a command that boots $ETUDE_ENTRY"
    )


def booted_as(
    entry: str, root: Path = Path("/"), offered: list[Entry] | None = None
) -> tuple[bool | None, str]:
    """True if the running system is that of the entry, and the reason; None: unknown."""
    try:
        found = find(entry, entries(root) if offered is None else offered)
    except MachineRefuses as refusal:
        return None, str(refusal)
    running = tree.read_text(root, "proc/sys/kernel/osrelease")
    line = tree.read_text(root, "proc/cmdline")
    if running is None or line is None:
        return None, "what runs cannot be read from /proc"
    if found.release is not None and found.release != running:
        return False, f"kernel {running} runs, not {found.release}"
    if found.options is None or "$" in found.options:
        return None, "the entry has no kernel command line"
    asked, given = _compared(found.options), _compared(line)
    if asked != given:
        return False, f"booted with {' '.join(given)!r}, not {' '.join(asked)!r}"
    if found.release is None:
        return (
            None,
            f"kernel {running} runs with that command line; the entry does not name its kernel release",
        )
    return True, f"kernel {running} runs with that command line"


def _compared(line: str) -> list[str]:
    try:
        parts = shlex.split(line)
    except ValueError:
        parts = line.split()
    return [part for part in parts if not part.startswith(NOT_COMPARED)]


def _path(names: tuple[str, ...]) -> str:
    return ">".join(name.replace(">", ">>") for name in names)


# Words after which a command may begin, such as `if …; then menuentry …`.
BEFORE_COMMANDS = ("then", "else", "do", "elif", "if", "while", "until")
WITH_VALUE = ("--class", "--users", "--hotkey", "--id", "--source", "--function")
ID_OPTION = "$menuentry_id_option"
"""Variable that grub-mkconfig writes instead of `--id`, so that old versions of GRUB ignore it."""


@dataclass(frozen=True)
class Item:
    """A menu entry: the ids and titles on its path from the top, and its lines `linux` and `initrd`."""

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    kernel: str | None = None
    options: str | None = None
    initrd: tuple[str, ...] = ()


@dataclass(frozen=True)
class Word:
    """A word, a brace of a block, or the end of a command (`\
    `); `plain`: no part of it was quoted."""

    text: str
    plain: bool = True

    def is_(self, *texts: str) -> bool:
        return self.plain and self.text in texts


END = Word("\n")


def menu(text: str) -> list[Item]:
    """The entries of a grub.cfg, in its order. Invalid parts are skipped; nothing is evaluated."""
    reader = _Reader(list(split_words(text)))
    found: list[Item] = []
    while reader.at < len(reader.words):
        found += reader.block((), ())
    return found


def split_words(text: str) -> Iterator[Word]:
    """The words of a GRUB script."""
    at, size = 0, len(text)
    while at < size:
        character = text[at]
        if character in " \t\r":
            at += 1
        elif text.startswith("\\\n", at):
            at += 2
        elif character in "\n;&|":
            yield END
            at += 1
        elif character == "#":
            at = text.find("\n", at) if "\n" in text[at:] else size
        elif character in "{}":
            yield Word(character)
            at += 1
        else:
            word, at = _word(text, at)
            yield word


def _word(text: str, at: int) -> tuple[Word, int]:
    found, plain, size = [], True, len(text)
    while at < size and text[at] not in " \t\r\n;&|{}":
        character = text[at]
        if character == "\\":
            found.append("" if text[at + 1 : at + 2] == "\n" else text[at + 1 : at + 2])
            plain, at = False, at + 2
        elif character == "'":
            end = text.find("'", at + 1)
            end = size if end < 0 else end
            found.append(text[at + 1 : end])
            plain, at = False, end + 1
        elif character == '"':
            part, at = _double(text, at + 1)
            found.append(part)
            plain = False
        elif text.startswith("${", at):
            end = text.find("}", at)
            end = size if end < 0 else end + 1
            found.append(text[at:end])
            at = end
        else:
            found.append(character)
            at += 1
    return Word("".join(found), plain), at


def _double(text: str, at: int) -> tuple[str, int]:
    """Text within double quotes, where a backslash quotes only `$`, `"`, itself and a line's end."""
    found, size = [], len(text)
    while at < size and text[at] != '"':
        if text[at] == "\\" and text[at + 1 : at + 2] in ("$", '"', "\\", "\n"):
            found.append("" if text[at + 1] == "\n" else text[at + 1])
            at += 2
        else:
            found.append(text[at])
            at += 1
    return "".join(found), at + 1


def _argument(word: str) -> str:
    """A word in the form that GRUB passes to the kernel."""
    escaped = "".join(f"\\{c}" if c in "\\'\"" else c for c in word)
    return f'"{escaped}"' if " " in word else escaped


@dataclass
class _Reader:
    words: list[Word]
    at: int = 0

    def block(self, ids: tuple[str, ...], titles: tuple[str, ...]) -> Iterator[Item]:
        """The entries up to the brace that ends the block."""
        begins = True
        while self.at < len(self.words):
            word = self.words[self.at]
            self.at += 1
            if word.is_("}"):
                return
            if begins and word.is_("menuentry", "submenu"):
                yield from self.entry(word.text, ids, titles)
                begins = True
                continue
            if word.is_("{"):  # a function's block
                yield from self.block(ids, titles)
            begins = word is END or word.is_("{") or (begins and word.is_(*BEFORE_COMMANDS))

    def entry(self, kind: str, ids: tuple[str, ...], titles: tuple[str, ...]) -> Iterator[Item]:
        title, name = self.heading()
        if title is None:
            return
        ids, titles = (*ids, name or title), (*titles, title)
        if kind == "submenu":
            yield from self.block(ids, titles)
            return
        kernel = options = None
        initrd: tuple[str, ...] = ()
        for command in self.commands():
            if command[0] in ("linux", "linux16", "linuxefi") and len(command) > 1 and kernel is None:
                kernel, options = command[1], " ".join(map(_argument, command[2:]))
            elif command[0] in ("initrd", "initrd16", "initrdefi") and not initrd:
                initrd = tuple(command[1:])
        yield Item(ids, titles, kernel, options, initrd)

    def heading(self) -> tuple[str | None, str | None]:
        """Title and id of an entry, up to the start of its block; no title without a block."""
        title = name = None
        option = ""
        while self.at < len(self.words):
            word = self.words[self.at]
            self.at += 1
            if word is END:
                return None, None
            if word.is_("{"):
                return title, name
            if option:
                name = word.text if option in ("--id", ID_OPTION) else name
                option = ""
            elif word.text.startswith("--id="):
                name = word.text[5:]
            elif word.text in (*WITH_VALUE, ID_OPTION):
                option = word.text
            elif not word.text.startswith("--") and title is None:
                title = word.text
        return None, None

    def commands(self) -> Iterator[list[str]]:
        """The commands up to the brace that ends the block."""
        depth = 1
        command: list[str] = []
        while self.at < len(self.words) and depth:
            word = self.words[self.at]
            self.at += 1
            depth += word.is_("{") - word.is_("}")
            if word is END or word.is_("{", "}"):
                if command:
                    yield command
                command = []
            elif command or not word.is_(*BEFORE_COMMANDS):
                command.append(word.text)
