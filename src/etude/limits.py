"""System limits that prevent processes from starting: the limit reached, its value, and advice."""

from __future__ import annotations

import _thread
import errno
import re
import resource
import threading

_ERROR = re.compile(r"\(os error (\d+)\)")


def limit_reached(error: str | int | None) -> str | None:
    """The limit that an error is about, by errno or an engine's message; None for another error."""
    if isinstance(error, str):
        found = _ERROR.search(error)
        error = int(found[1]) if found else None
    if error == errno.EAGAIN:
        most = _shown(resource.RLIMIT_NPROC)
        return (
            f"the limit of processes is reached (ulimit -u is {most}; or pids.max of the control group): "
            "raise it, or start fewer workers"
        )
    if error == errno.EMFILE:
        most = _shown(resource.RLIMIT_NOFILE)
        return f"the limit of open files is reached (ulimit -n is {most}): raise it, or start fewer workers"
    if error == errno.ENFILE:
        return "the machine's limit of open files is reached (sysctl fs.file-max): raise it"
    return None


def threads_start(count: int) -> bool:
    """True if this many threads can be started at once."""
    go_on = threading.Lock()

    def wait() -> None:
        with go_on:
            pass

    with go_on:
        try:
            for _ in range(count):
                _thread.start_new_thread(wait, ())
        except RuntimeError:
            return False
    return True


def _shown(limit: int) -> str:
    soft, _ = resource.getrlimit(limit)
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
