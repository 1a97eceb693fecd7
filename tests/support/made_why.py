"""Instrumented pairs of two tests, made by hand, with names that try to break out of a page."""

from __future__ import annotations

import json
from pathlib import Path

from etude.why.causes import Frame, cause_of
from etude.why.instrumented_pairs import STATE, Instrumented, _document
from etude.why.instruments import CallCount, Run
from etude.why.stacks import summed, write_stacks

KERNEL, LIBC = "[kernel.kallsyms]", "/usr/lib/x86_64-linux-gnu/libc.so.6"
HOSTILE = [
    "</script><script>window.broken=1</script>",
    "</title></svg><img src=x onerror='window.broken=1'>",
    "\"quoted\" & 'so'; rm",
    "line\nend",
    "# note",
    "operator()(int) 7 7",
    " ",
    "é\u202e",
]
PAIRS = 6


def made(stacks: bool = True) -> Instrumented:
    """Pairs in which one function and the reads take longer, and another function less time."""
    sides = [tuple(_run(n, slow, stacks) for n in range(PAIRS)) for slow in (False, True)]
    calls = [
        tuple(
            {
                ("read", "/data/<b>"): CallCount(count, 1 << 20, 0.01 + (count + n) * 1e-6),
                ("close", ""): CallCount(1, 0, 9e-7),
            }
            for n in range(PAIRS)
        )
        for count in (256, 4096)
    ]
    times = [tuple(run.elapsed_s / 1.02 for run in side) for side in sides]
    return Instrumented(
        "old", "new </script>", (times[0], times[1]), (sides[0], sides[1]), (calls[0], calls[1]), ()
    )


def _run(number: int, slow: bool, stacks: bool) -> Run:
    noise = 1.0 + 0.001 * ((number * 7 + slow) % 5)
    read = [("ksys_read", KERNEL), ("do_syscall_64", KERNEL), ("read", LIBC), ("fill_buffer", "/bin/p")]
    parts = [
        ([("slow_hash", "/bin/p")], 0.15 if slow else 0.05),
        ([("quick_sort", "/bin/p")], 0.10 if slow else 0.13),
        (read, 0.06 if slow else 0.03),
        *(([(name, "/bin/p")], 0.01) for name in HOSTILE),
    ]
    times = {}
    for frames, seconds in parts:
        stack = tuple(Frame(*frame) for frame in (*frames, ("main", "/bin/p")))
        times[cause_of("p", stack), stack] = seconds * noise
    kept = {("p", stack): seconds for (_, stack), seconds in times.items()}
    return Run(summed((cause, s) for (cause, _), s in times.items()), 0, kept if stacks else {})


def write_made(directory: Path, *, stacks: bool = True) -> Path:
    """A results directory that holds nothing but the pairs, as `etude why` reads them."""
    place = directory / "why"
    place.mkdir(parents=True)
    found = made(stacks)
    (place / STATE).write_text(json.dumps(_document(found)))
    if stacks:
        a, b = (tuple(run.stacks for run in side) for side in found.runs)
        write_stacks(place, (a, b))
    return directory
