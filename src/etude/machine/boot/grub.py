"""Parser of the menu in a grub.cfg: its entries, also within submenus, with kernel and options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
