"""Masks secrets in commands and names: replaced by `(masked)` wherever they would be stored, packed or shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

from etude.errors import InputError, UsageError
from etude.patterns import Pattern, PatternError, compile_pattern, cut_out

MASKED = "(masked)"
_NAMES = r"(?i:password|passwd|[a-z0-9]_pwd|token|secret|api[_-]?key)"
_QUOTED = r""""(?:\\.|[^"\\\n])*"|'[^'\n]*'"""
SECRETS = (
    # In a URL, up to the last @: a password may contain others.
    r"://([^/\s\"'<>]+)@",
    # user:password@host without a scheme. image:tag@sha256:… is not one.
    r"(?:^|[^\w./:@-])([\w.+-]+:[^\s\"'@/\\]+)@(?:[0-9A-Za-rt-z_\[]|s(?:$|[^h]|h(?:$|[^a]|a(?:$|\D))))",
    r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{15,}|\bsk-[\w-]{16,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bxox[abeoprs]-[\w-]{10,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\bAIza[\w-]{30,}|\bnpm_\w{20,}|\bpypi-[\w-]{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*|(?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}",
    # password=… anywhere, and the word after an option with such a name.
    rf"{_NAMES}=({_QUOTED}|[^\s;&,]+)",
    rf"(?:^|\s)--?[\w-]*{_NAMES}\s+({_QUOTED}|[^\s;&,-][^\s;&,]*)",
)
"""Patterns that are always masked; the first group, or all of the match."""
SIGNS = (
    *(
        "@",
        "passw",
        "_pwd",
        "token",
        "secret",
        "api",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "sk-",
    ),
    *("akia", "asia", "xox", "eyj", "aiza", "npm_", "pypi-", "private key", "bearer", "basic"),
)
"""Lower-case text of which each secret contains some: without any, no pattern is tried."""
_HINT = re.compile(_NAMES)
_OPTION = re.compile(rf"--?[\w-]*{_NAMES}")
_OPTION_SET = re.compile(rf"(--?[\w-]*{_NAMES}=).+", re.DOTALL)
SECRET_VARIABLE = re.compile(
    r"TOKEN|SECRET|PASS(?!IVE|ENV)|(?<=\w)(?<!OLD)PWD$|CREDENTIAL"
    r"|(?:^|_|API|ACCESS|PRIVATE|AUTH|SSH)KEY(?!BOARD|MAP|CHAIN_PATH)"
    r"|AUTH(?!OR)|COOKIE|SIGNATURE|PRIVATE|_PW$|_PIN$|WEBHOOK|_DSN$|CONNECTION_STRING",
    re.I,
)
"""Names of environment variables whose values are secrets."""
_VARIABLES = {
    "variables": SECRET_VARIABLE,
    "environment": SECRET_VARIABLE,
    "assignments": re.compile(rf"{_NAMES}$"),
}
"""Members of JSON data whose own members are variables, and the names of secret ones."""
_HOLDERS = tuple(f'"{name}"' for name in _VARIABLES)


def mask_of(plan: Mapping[str, Any], source: str, patterns: Sequence[str] = ()) -> Mask:
    """The mask of a stored plan, with further patterns. Raises InputError if its own cannot be read."""
    try:
        return Mask(list(dict.fromkeys([*plan.get("masks", ()), *patterns])))
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: its masks cannot be read: {error}; was it edited?") from None


def mask_of_all(documents: Iterable[tuple[str, Mapping[str, Any]]], patterns: Sequence[str] = ()) -> Mask:
    """The mask of several experiments' documents, each with its source. Raises: same as `mask_of`."""
    found = Mask(patterns)
    for source, document in documents:
        plan = document.get("plan")
        found = mask_of(plan if isinstance(plan, Mapping) else {}, source, found.patterns)
    return found


class MaskError(UsageError, ValueError):
    """An invalid pattern of secrets, as an option or in a stored plan."""


class Mask:
    """Replaces possible secrets, and matches of the user's patterns: their first group, or all of the match.

    Raises MaskError for an invalid pattern.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.patterns = tuple(patterns)
        try:
            self._own = [compile_pattern(pattern) for pattern in patterns]
        except PatternError as error:
            raise MaskError(f"masks: {error}") from None

    def text(self, text: str) -> str:
        """The text without secrets."""
        for pattern in self._own:
            text = pattern.replaced(text, MASKED)
        return _usual(text)

    def words(self, words: Iterable[str]) -> list[str]:
        """Each word of a command without secrets; a word after an option such as `--password` is masked as a whole.

        A pattern of the user may match over several words, separated by blanks.
        """
        found: list[str] = []
        before = ""
        whole = list(words)
        for pattern in self._own:
            whole = _without(pattern, whole)
        for word in whole:
            secret = _OPTION.fullmatch(before) and word and not word.startswith("-")
            its_own = _OPTION_SET.fullmatch(word)
            found.append(MASKED if secret else f"{its_own[1]}{MASKED}" if its_own else _usual(word))
            before = word
        return found

    def data(self, value: Any) -> Any:
        """JSON data, its texts without secrets; a list of texts counts as a command."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.member(member, name) for name, member in value.items()}
        if isinstance(value, list | tuple):
            texts = all(isinstance(each, str) for each in value)
            return type(value)(self.words(value) if texts else map(self.data, value))
        return value

    def member(self, value: Any, *path: str) -> Any:
        """JSON data at this path of a document: the names of the members that contain it."""
        *above, name = path
        if isinstance(value, str) and above and (secret := _VARIABLES.get(above[-1])):
            return self._variable(name, value, secret)
        if isinstance(value, dict) and name in _VARIABLES:
            return {self.text(inner): self.member(each, name, inner) for inner, each in value.items()}
        return self.data(value)

    def _variable(self, name: str, value: str, secret: re.Pattern[str]) -> str:
        """The value of a variable, or of an assignment to it."""
        if value and secret.search(name):
            return MASKED
        head, equals, tail = self.text(f"{name}={value}").partition("=")
        return tail if equals and head == name else MASKED

    def parts(self, value: Any) -> Any:
        """Data of any kind, dataclasses too: each of its texts without secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.parts(name): self.parts(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(self.parts, value))
        if is_dataclass(value) and not isinstance(value, type):
            return replace(
                value, **{each.name: self.parts(getattr(value, each.name)) for each in fields(value)}
            )
        return value

    def content(self, text: bytes) -> bytes:
        """Text, a line of it, or JSON, which stays JSON."""
        before = text.decode("utf-8", "surrogateescape")
        structured = (
            "\\" in before or (self._own and "[" in before) or any(each in before for each in _HOLDERS)
        )
        as_it_stands = not structured and not _HINT.search(before)
        if as_it_stands and self.text(before) == before:
            return text
        try:
            found = json.loads(before)
        except (ValueError, RecursionError):
            return self.text(before).encode("utf-8", "surrogateescape")
        if (masked := self.data(found)) == found:
            return text
        indented = "\n " in before
        layout: dict[str, Any] = {"indent": 1} if indented else {"separators": (",", ":")}
        after = json.dumps(masked, ensure_ascii=False, **layout) + "\n" * before.endswith("\n")
        return after.encode("utf-8", "surrogateescape")

    def title(self) -> None:
        """Mask this process's command line, as `ps` shows it; its length stays."""
        with suppress(OSError, ValueError, IndexError), open("/proc/self/cmdline", "rb") as file:
            before = file.read()
            words = before.decode("utf-8", "surrogateescape").split("\0")
            after = "\0".join(self.words(words)).encode("utf-8", "surrogateescape")
            if after == before:
                return
            with open("/proc/self/stat", encoding="utf-8", errors="replace") as stat:
                start, end = map(int, stat.read().rsplit(")", 1)[1].split()[45:47])
            with open("/proc/self/mem", "r+b", buffering=0) as memory:
                memory.seek(start)
                memory.write(after[: end - start - 1].ljust(end - start, b"\0"))


def _usual(text: str) -> str:
    """The text without secrets of the built-in patterns."""
    small = text.lower()
    if any(sign in small for sign in SIGNS):
        for secret in SECRETS:
            text = compile_pattern(secret).replaced(text, MASKED)
    return text


def _without(pattern: Pattern, words: Sequence[str]) -> list[str]:
    """The words of a command with matches in a word, or across the line, replaced in each word that they touch."""
    over = list(pattern.spans(" ".join(words)))
    found, at = list[str](), 0
    for word in words:
        inside = [(max(start - at, 0), min(end - at, len(word))) for start, end in over]
        spans = [(start, end) for start, end in inside if start < end]
        found.append(cut_out(word, _joined([*spans, *pattern.spans(word)]), MASKED))
        at += len(word) + 1
    return found


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping or adjacent spans merged, in rising order."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
