"""Secrets in commands and names: replaced by `(masked)` wherever they would be stored, packed or shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from etude.errors import InputError
from etude.patterns import Pattern, compile_pattern, cut_out

MASKED = "(masked)"
_NAMES = r"(?i:password|passwd|token|secret|api[_-]?key)"
SECRETS = (
    # Of a URL, up to the last @: a password may hold others.
    r"://([^/\s\"'<>]+)@",
    # user:password@host without a scheme. image:tag@sha256:… is none.
    r"(?:^|[^\w./:@-])([\w.+-]+:[^\s\"'@/\\]+)@(?:[0-9A-Za-rt-z_\[]|s(?:$|[^h]|h(?:$|[^a]|a(?:$|\D))))",
    r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{15,}|\bsk-[\w-]{16,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bxox[abeoprs]-[\w-]{10,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\bAIza[\w-]{30,}|\bnpm_\w{20,}|\bpypi-[\w-]{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*|(?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}",
    # password=… anywhere, and the word behind an option of such a name.
    rf"{_NAMES}=([^\s;&,]+)",
    rf"(?:^|\s)--?[\w-]*{_NAMES}\s+([^\s;&,-][^\s;&,]*)",
)
"""Patterns of what is masked in any case; the first group, or all of the match."""
SIGNS = (
    *(
        "@",
        "passw",
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
"""Text in small letters of which each secret has some: without, no pattern is asked."""
_HINT = re.compile(_NAMES)
_OPTION = re.compile(rf"--?[\w-]*{_NAMES}")


def mask_of(plan: Mapping[str, Any], source: str, patterns: Sequence[str] = ()) -> Mask:
    """The mask of a stored plan, with further patterns. Raises InputError where its own cannot be read."""
    try:
        return Mask([*plan.get("masks", ()), *patterns])
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: its masks cannot be read: {error}; was it edited?") from None


class Mask:
    """Replaces what looks like a secret, and what matches one of the user's patterns: its first group, or all of it.

    Raises PatternError for a pattern that is invalid.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.patterns = tuple(patterns)
        self._own = [compile_pattern(pattern) for pattern in patterns]

    def text(self, text: str) -> str:
        """The same without secrets."""
        for pattern in self._own:
            text = pattern.replaced(text, MASKED)
        return _usual(text)

    def words(self, words: Iterable[str]) -> list[str]:
        """Each word of a command without secrets; one behind an option such as `--password` is all secret.

        A pattern of the user's may match over several words, with blanks between them.
        """
        found: list[str] = []
        before = ""
        whole = list(words)
        for pattern in self._own:
            whole = _without(pattern, whole)
        for word in whole:
            secret = _OPTION.fullmatch(before) and word and not word.startswith("-")
            found.append(MASKED if secret else _usual(word))
            before = word
        return found

    def data(self, value: Any) -> Any:
        """JSON data, its texts without secrets; a list of texts counts as a command."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.data(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            texts = all(isinstance(each, str) for each in value)
            return type(value)(self.words(value) if texts else map(self.data, value))
        return value

    def content(self, text: bytes) -> bytes:
        """Text, a line of it, or JSON, which stays JSON."""
        before = text.decode("utf-8", "surrogateescape")
        as_it_stands = "\\" not in before and not _HINT.search(before) and not (self._own and "[" in before)
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
    """The same without what is masked in any case."""
    small = text.lower()
    if any(sign in small for sign in SIGNS):
        for secret in SECRETS:
            text = compile_pattern(secret).replaced(text, MASKED)
    return text


def _without(pattern: Pattern, words: Sequence[str]) -> list[str]:
    """The words of a command with what matches in one of them, or in their line, replaced in each that it touches."""
    over = list(pattern.spans(" ".join(words)))
    found, at = list[str](), 0
    for word in words:
        inside = [(max(start - at, 0), min(end - at, len(word))) for start, end in over]
        spans = [(start, end) for start, end in inside if start < end]
        found.append(cut_out(word, _joined([*spans, *pattern.spans(word)]), MASKED))
        at += len(word) + 1
    return found


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that overlap or meet as one, in rising order."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
