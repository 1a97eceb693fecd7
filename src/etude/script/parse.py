"""Compiles a script to a flat program; finds all errors that can be found without running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from etude.script.arguments import (
    parse_assignment,
    parse_cache,
    parse_condition,
    parse_copy,
    parse_exec,
    parse_foreach,
    parse_metric,
    parse_metric_name,
    parse_on_hosts,
    parse_quiet,
    parse_test,
    parse_threads,
    parse_timeout,
)
from etude.script.directive_words import NAME, ArgumentError, compile_text, shown_word
from etude.script.disk import parse_disk
from etude.script.forloop import parse_for
from etude.script.program import Instruction, Op, Program, ScriptError
from etude.script.source import INCLUDES, LogicalLine, Source, error_at, read_lines, read_stored, read_text

ELSE_IFS = ("ELSEIF", "ELSIF")
INTERNAL = frozenset((Op.END_TEST, Op.END_INTERLEAVE, Op.JUMP, Op.NEXT))
"""Instructions that are no directives."""
DIRECTIVES = (*(op.value for op in Op if op not in INTERNAL), *INCLUDES, "ELSE", *ELSE_IFS, "FI", "DONE")

_OF_A_TEST = frozenset(
    (
        *(Op.PRESETUP, Op.SETUP, Op.EXEC, Op.CLEANUP, Op.POSTCLEANUP),
        *(Op.PURPOSE, Op.EXPECT, Op.CACHE, Op.BOOT, Op.METRIC, Op.TIMEOUT),
        *(Op.AGE, Op.FILL, Op.PRECONDITION),
    )
)
_OUTSIDE_TESTS = {
    Op.TEST: "close it with DONE first",
    Op.INTERLEAVE: "it stands round tests",
    Op.FASTFAIL: "it is for the tests that follow it",
    Op.THREADS: "it is for the tests that follow it",
    Op.QUIET: "it is for the tests that follow it",
    Op.HOSTS: "it is for the tests that follow it",
}
_LOOPS = frozenset((Op.WHILE, Op.FOREACH, Op.FOR))
_NEEDS = {
    Op.SYSTEM: "a command",
    Op.EVAL: "an expression",
    Op.CHECKPOINT: "the name of a file",
    Op.PRESETUP: "a command",
    Op.SETUP: "a command",
    Op.EXEC: "a command",
    Op.CLEANUP: "a command",
    Op.POSTCLEANUP: "a command",
    Op.BOOT: "an entry of the boot loader",
    Op.AGE: "a directory",
    Op.FILL: "a directory",
    Op.PRECONDITION: "a device or a file",
    Op.HOSTS: "the name of a hosts file",
    Op.COPY: "what to copy, and where to",
    Op.TIMEOUT: "a duration",
    Op.PURPOSE: "a text",
    Op.EXPECT: "a text",
}


def parse_script(path: str | Path, search: Sequence[str | Path] = ()) -> Program:
    """The program of a script and of all that it includes.

    Raises:
        InputError: the script cannot be read.
        ScriptError: it is invalid.
    """
    return _compile(str(path), read_lines(path, search))


def parse_stored(files: Mapping[str, Sequence[str]]) -> Program:
    """The program of a stored script, all its files by name, the script first; the disk is not read.

    Raises:
        ScriptError: it is invalid.
    """
    return _compile(next(iter(files)), read_stored(files))


def parse_text(text: str, name: str = "script") -> Program:
    """The program of a text; its includes are looked for in the working directory.

    Raises:
        ScriptError: it is invalid.
    """
    return _compile(name, read_text(text, name))


def _compile(path: str, source: Source) -> Program:
    compiler = _Compiler(source)
    for line in source.lines:
        compiler.line(line)
    compiler.end()
    return Program(path, tuple(compiler.instructions), source.digest, source.files)


@dataclass
class _Block:
    """An open block: its first instruction, its line, and for an IF the jumps without a target."""

    op: Op
    start: int
    line: LogicalLine
    branch: int | None = None
    jumps: list[int] = field(default_factory=list)


class _Compiler:
    """Turns each logical line into an instruction; targets are set once they are known."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.at = LogicalLine("", "", 0)
        self.instructions: list[Instruction] = []
        self.open: list[_Block] = []
        self.around: list[Op] = []  # open TEST and INTERLEAVE

    def line(self, line: LogicalLine) -> None:
        self.at = line
        words = line.text.split(None, 1)
        word, rest = words[0], words[1] if len(words) == 2 else ""
        op = _OPS.get(word)
        if op is None:
            self._other(word, rest)
            return
        if op in _OF_A_TEST:
            if Op.TEST not in self.around:
                raise self._error(f"{word} stands outside any TEST")
        elif op in _OUTSIDE_TESTS:
            self._check_outside(op)
            if op is Op.THREADS and rest.startswith("="):
                rest = rest[1:].lstrip()
        self._check(op, rest)
        if op in _OPENERS:
            self._begin(op)
        self._append(op, rest)

    def end(self) -> None:
        """Report unclosed blocks."""
        if self.open:
            block = self.open[-1]
            self.at = block.line
            raise self._error(f"{block.op} is never closed; expected {_closer(block)} before the end")

    def _other(self, word: str, rest: str) -> None:
        if word.startswith("THREADS="):
            self._check_outside(Op.THREADS)
            text = self.at.text[len("THREADS=") :].lstrip()
            self._check(Op.THREADS, text)
            self._append(Op.THREADS, text)
        elif word == "DONE":
            self._nothing_behind(word, rest)
            self._done()
        elif word == "FI":
            self._nothing_behind(word, rest)
            self._fi()
        elif word == "ELSE":
            more = rest.split(None, 1)
            if more and more[0] == "IF":
                self._else_if(more[1] if len(more) == 2 else "")
            elif more:
                raise self._error("ELSE stands alone, or before an IF", rest, 1)
            else:
                self._else()
        elif word in ELSE_IFS:
            self._else_if(rest)
        else:
            raise self._unknown(word)

    def _unknown(self, word: str) -> ScriptError:
        if word.upper() in DIRECTIVES:
            return self._error(f"directives are upper case: expected {word.upper()}")
        close = get_close_matches(word[:40].upper(), DIRECTIVES, 1)
        hint = f"did you mean {close[0]}?" if close else "expected one of docs/reference/language.md"
        name, equals, _ = self.at.text.partition("=")
        if equals and not close and NAME.fullmatch(name.strip()):
            hint = f"to set a variable write VAR {shown_word(self.at.text)[1:-1]}"
        return self._error(f"no directive {shown_word(word)}; {hint}")

    # --- blocks -----------------------------------------------------------------------------------

    def _begin(self, op: Op) -> None:
        index = len(self.instructions)
        self.open.append(_Block(op, index, self.at, index if op is Op.IF else None))
        if op in (Op.TEST, Op.INTERLEAVE):
            self.around.append(op)

    def _check_outside(self, op: Op) -> None:
        if Op.TEST in self.around:
            raise self._error(f"{op} inside {self._opener(Op.TEST)}; {_OUTSIDE_TESTS[op]}")
        if op is Op.INTERLEAVE and self.around:
            raise self._error(f"INTERLEAVE inside {self._opener(op)}; close it with DONE first")

    def _done(self) -> None:
        block = self._innermost("DONE")
        if block.op is Op.IF:
            raise self._error(f"DONE where {self._named(block)} is open; expected FI")
        self.open.pop()
        if block.op in _LOOPS:
            self._append(Op.NEXT, "", block.start)
            self._aim(block.start, len(self.instructions))
            return
        self.around.pop()
        self._aim(block.start, len(self.instructions))
        self._append(Op.END_TEST if block.op is Op.TEST else Op.END_INTERLEAVE, "", block.start)

    def _fi(self) -> None:
        block = self._if_of("FI")
        self.open.pop()
        here = len(self.instructions)
        for index in block.jumps if block.branch is None else (*block.jumps, block.branch):
            self._aim(index, here)

    def _else(self) -> None:
        self._next_branch("ELSE").branch = None

    def _else_if(self, condition: str) -> None:
        block = self._next_branch("ELSE IF")
        self._check(Op.IF, condition)
        block.branch = len(self.instructions)
        self._append(Op.IF, condition)

    def _next_branch(self, word: str) -> _Block:
        """End the open branch; the preceding IF jumps here if its condition is false."""
        block = self._if_of(word)
        if block.branch is None:
            raise self._error(f"{word} behind the ELSE of {self._named(block)}; expected FI")
        block.jumps.append(len(self.instructions))
        self._append(Op.JUMP, "")
        self._aim(block.branch, len(self.instructions))
        return block

    def _if_of(self, word: str) -> _Block:
        block = self._innermost(word)
        if block.op is not Op.IF:
            raise self._error(f"{word} where {self._named(block)} is open; expected DONE")
        return block

    def _innermost(self, word: str) -> _Block:
        if not self.open:
            raise self._error(f"{word}, but nothing is open here")
        return self.open[-1]

    def _opener(self, op: Op) -> str:
        return next(self._named(block) for block in self.open if block.op is op)

    def _named(self, block: _Block) -> str:
        file, line = block.line.file, block.line.line
        return f"the {block.op} of " + (f"line {line}" if file == self.at.file else f"{file}:{line}")

    # --- instructions -----------------------------------------------------------------------------

    def _append(self, op: Op, text: str, target: int = -1) -> None:
        _, file, line = self.at
        self.instructions.append(Instruction(op, text, file, line, target))

    def _aim(self, index: int, target: int) -> None:
        old = self.instructions[index]
        self.instructions[index] = Instruction(old.op, old.text, old.file, old.line, target)

    def _nothing_behind(self, word: str, rest: str) -> None:
        if rest:
            raise self._error(f"nothing stands behind {word}, found {shown_word(rest)}", rest, 1)

    def _check(self, op: Op, text: str) -> None:
        """Check a directive's text as far as it contains no variables."""
        if not text and op in _NEEDS:
            raise self._error(f"expected {_NEEDS[op]} behind {op}", text, 1)
        if op in (Op.STOP, Op.INTERLEAVE):
            self._nothing_behind(op, text)
        check = _CHECKS.get(op)
        if check is None:
            return
        try:
            if "%" not in text and "$" not in text:
                check(text)
            else:
                _check_fixed(op, check, text)
        except ArgumentError as error:
            raise self._error(f"{op}: {error.message}", text, error.column) from None

    def _error(self, message: str, text: str = "", column: int = 0) -> ScriptError:
        return error_at(self.source.files, self.at.file, self.at.line, message, text, column)


def _check_fixed(op: Op, check: Callable[[str], object], text: str) -> None:
    """Check a text that may contain variables: only errors that no value could resolve count.

    Raises:
        ArgumentError: same as `check`.
    """
    template = compile_text(text)
    if template.is_static:
        try:
            check(template.text)
        except ArgumentError as error:
            raise ArgumentError(error.message, error.column if template.text == text else 0) from None
        return
    if op in (Op.CACHE, Op.THREADS, Op.QUIET, Op.AGE, Op.FILL, Op.PRECONDITION):
        return
    head = text[: template.holes[0].column - 1]
    if any(quote in head for quote in "'\"\\") or (op in _ASSIGNMENTS and "=" not in head):
        return
    fixed = max(head.rfind(character) for character in "= \t") + 1
    try:
        (parse_metric_name if op is Op.METRIC else check)(text)
    except ArgumentError as error:
        if error.column <= fixed:
            raise


def _expression(text: str) -> None:
    """`NAME=EXPRESSION`.

    Raises:
        ArgumentError: one of them is missing.
    """
    if not parse_assignment(text)[1]:
        raise ArgumentError("expected an expression", len(text.rstrip()) + 1)


def _closer(block: _Block) -> str:
    return "FI" if block.op is Op.IF else "DONE"


_ASSIGNMENTS = frozenset((Op.VAR, Op.VAREX, Op.ENV, Op.ENVEX))
_OPS = {op.value: op for op in Op if op not in INTERNAL}
_OPENERS = _LOOPS | {Op.TEST, Op.INTERLEAVE, Op.IF}
_CHECKS: dict[Op, Callable[[str], object]] = {
    Op.VAR: parse_assignment,
    Op.ENV: parse_assignment,
    Op.VAREX: _expression,
    Op.ENVEX: _expression,
    Op.THREADS: parse_threads,
    Op.TEST: parse_test,
    Op.CACHE: parse_cache,
    Op.METRIC: parse_metric,
    Op.QUIET: parse_quiet,
    **{op: partial(parse_disk, op.value) for op in (Op.AGE, Op.FILL, Op.PRECONDITION)},
    Op.IF: parse_condition,
    Op.WHILE: parse_condition,
    Op.FOREACH: parse_foreach,
    Op.FOR: parse_for,
    Op.COPY: parse_copy,
    Op.TIMEOUT: parse_timeout,
    Op.EXEC: parse_exec,
    **dict.fromkeys((Op.SYSTEM, Op.PRESETUP, Op.SETUP, Op.CLEANUP, Op.POSTCLEANUP), parse_on_hosts),
}
