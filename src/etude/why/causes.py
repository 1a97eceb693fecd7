"""Causes: what a thread did while time passed, by the stack that was seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, NamedTuple

Kind = Literal[
    "function",
    "call",
    "page faults",
    "waiting for a CPU",
    "start",
    "other functions",
    "recorded call",
    "outside of calls",
]
_PREFIX = re.compile(
    r"^(?:__x64_sys_|__ia32_sys_|__arm64_sys_|__se_sys_|__do_sys_|ksys_|kernel_|do_sys_|do_|__)"
)
_ENTRY = ("do_syscall_64", "entry_SYSCALL_64_after_hwframe", "el0_svc", "invoke_syscall", "x64_sys_call")
_SYSCALL = re.compile(r"^(?:__x64_sys_|__arm64_sys_|__se_sys_|__do_sys_)(\w+)$")
_FAULT = re.compile(r"^(?:asm_)?exc_page_fault$|^do_page_fault$|^el0_da$|^el0_ia$")
_LIBRARY = re.compile(r"(?:^|/)(?:libc|libpthread|ld-linux[^/]*|ld-musl[^/]*)(?:-[\d.]+)?\.so")
"""Shared objects whose functions are not named as the caller of a system call."""
UNKNOWN = "[unknown]"
ENTRY = "entry and exit of system calls"


class Frame(NamedTuple):
    """A function of a stack."""

    symbol: str
    """Name; `[unknown]` without one."""
    place: str
    """Path of the program or library; in square brackets of the kernel."""

    @property
    def of_kernel(self) -> bool:
        """True for a function of the kernel or of one of its modules."""
        return self.place.startswith("[") and self.place not in (
            "[vdso]",
            "[vsyscall]",
            UNKNOWN,
            "[heap]",
            "[stack]",
        )


@dataclass(frozen=True, order=True)
class Cause:
    """Time is split among causes."""

    process: str
    """Name of the process that spent it."""
    kind: Kind
    name: str
    """Function, or system call."""
    caller: str = ""
    """Function of the program in which the call or the page fault was; file of a recorded call; empty: not known."""


def cause_of(process: str, stack: Sequence[Frame]) -> Cause:
    """The cause of a moment on a CPU, or before a block. stack: innermost function first; it may be empty."""
    kernel = [frame.symbol for frame in stack if frame.of_kernel]
    user = list(takewhile(_is_code, (frame for frame in stack if not frame.of_kernel)))
    if any(map(_FAULT.match, kernel)):
        return Cause(process, "page faults", "page faults", _function(user))
    if call := system_call(kernel):
        if call.startswith("exec"):
            return Cause(process, "start", "exec")
        return Cause(process, "call", call, _function([f for f in user if not _LIBRARY.search(f.place)]))
    if not user:
        return Cause(process, "function", kernel[-1] if kernel else UNKNOWN)
    return Cause(process, "function", _function(user))


def _is_code(frame: Frame) -> bool:
    """False where the unwinder has lost its way into data."""
    return frame.place not in ("[stack]", "[heap]")


def system_call(kernel: Sequence[str]) -> str:
    """The system call of a stack's kernel functions, innermost first; empty for none."""
    for symbol in kernel:
        if found := _SYSCALL.match(symbol):
            return found[1].removeprefix("new")
    inner = ""
    for symbol in kernel:
        if symbol in _ENTRY:
            return ENTRY if not inner or "exit_to_user_mode" in inner else _PREFIX.sub("", inner)
        inner = symbol
    return ""


def _function(user: Sequence[Frame]) -> str:
    """The innermost function of the program; with its library if it has no name."""
    if not user:
        return ""
    frame = user[0]
    return frame.symbol if frame.symbol != UNKNOWN else f"{UNKNOWN} in {frame.place.rpartition('/')[2]}"
