"""The verbs of `etude`, by what they are for: a line of at most 70 characters each."""

from __future__ import annotations

from etude.version import __version__

ENGINE = frozenset(("io", "ipc", "capture", "record", "script", "prepare", "compile", "replay", "load"))
"""Verbs that `etude-engine` does itself, with its own options and exit statuses."""

OPERATIONS = {"io": ("create", "write", "read", "describe")}
"""The words that one of these verbs knows behind it."""

GROUPS: dict[str, dict[str, str]] = {
    "Measure": {
        "bench": "compare commands, interleaved until a ratio is known",
        "run": "run a benchmark script in the Auto-pilot language",
        "io sweep": "the I/O benchmark over buffer or file sizes",
        "io lab": "both I/O sweeps, with explanations and figures",
        "io explain": "explain a stored I/O sweep again",
        "io": "one run of the I/O benchmark",
        "ipc": "one run of the IPC benchmark: pipes and sockets",
    },
    "Analyse": {
        "stats": "tables, comparisons and warnings of results",
        "report": "one self-contained HTML page of results",
        "plot": "figures of results, for papers",
        "diff": "what differs between the machines of two results",
        "why": "why a test takes longer: causes and their shares",
        "plan": "how many trials a difference needs, from a pilot",
        "export": "results in the formats of other programs",
        "bundle": "pack results for publication, or verify a bundle",
    },
    "Claims": {
        "claims new": "a claims file from stored results",
        "claims check": "what claims need, and what is missing here",
        "claims run": "decide claims: supported, refuted or undecided",
        "claims verify": "run a bundle's claims again on this machine",
        "claims report": "a page of claims, or their artifact appendix",
    },
    "Record and replay": {
        "capture": "record the I/O of a program, ready for replay",
        "replay": "replay a capture, or a compiled script, in time",
        "record": "record the I/O of a program",
        "profile": "summarise a recording: calls, bytes, time, files",
        "script": "turn a recording into a script, and change it",
        "prepare": "build the files that a script needs",
        "compile": "compile a script for replay",
    },
    "Capacity": {
        "load": "offer load at a rate, or by a number of clients",
        "peak": "the maximum sustainable load of a server",
        "surface": "a response over configurations",
    },
    "Machine": {
        "doctor": "what makes numbers noisy on this machine",
        "quiet": "make the machine quiet, and put it back exactly",
        "cool": "make caches cold or warm, and show what is cached",
        "hosts": "check that other hosts can be used",
        "boot-resume": "resume scripts after a restart of the machine",
    },
    "Results over time": {
        "store add": "add results to a store, with their commit",
        "store": "list, check and remove stored results",
        "history": "steps in a test's stored results, and alerts",
        "history mark": "mark a step as expected",
        "compare": "compare two commits, tags, dates or machines",
        "bisect": "the commit that changes a metric, in spite of noise",
    },
    "Shell": {
        "completion": "completions for bash, zsh or fish",
    },
}

SUMMARIES = {verb: text for verbs in GROUPS.values() for verb, text in verbs.items()}
VERBS = {verb: text for verb, text in SUMMARIES.items() if verb not in ENGINE}
ENGINE_VERBS = {verb: text for verb, text in SUMMARIES.items() if verb in ENGINE}

FOLDERS = {
    verb: folder
    for folder, verbs in {
        "measure": ("bench", "run", "io sweep", "io lab", "io explain"),
        "analyse": ("stats", "report", "diff", "why", "plan", "export", "bundle"),
        "claims": ("claims new", "claims check", "claims run", "claims verify", "claims report"),
        "figures": ("plot", "profile"),
        "capacity": ("peak", "surface"),
        "machine": ("doctor", "quiet", "cool", "hosts", "boot-resume", "completion"),
        "over_time": ("store add", "store", "history", "history mark", "compare", "bisect"),
    }.items()
    for verb in verbs
}
"""The folder of `etude.cli` in which a verb has its module, and its options in the module `options`."""

EXIT_CODES = """\
exit codes:
  0      done; warnings about the data never change it
  1      a check was requested and the answer is no; a claim is refuted
  2      usage: options or arguments
  3      an input file is wrong
  4      a benchmark command failed and the policy is to stop
  5      the machine does not allow it: missing tool, permission, space
  6      the machine is being restarted; the experiment resumes after the boot
  7      refused: results that cannot be compared
  8      undecided: a claim, or a bound of --fail-if (--undecided fail)
  128+n  ended by signal n; what was measured is on disk
"""


def group_lines() -> str:
    """All verbs, a line each, below the names of their groups."""
    wide = max(map(len, SUMMARIES))
    return "\n".join(
        f"{group}:\n" + "".join(f"  {verb:<{wide}}  {text}\n" for verb, text in verbs.items())
        for group, verbs in GROUPS.items()
    )


def overview() -> str:
    """The text of `etude --help`."""
    return f"""\
Étude {__version__}: runs programs again and again until their numbers can be trusted.

usage: etude [--log FILE] VERB [options]
       etude VERB --help

--log FILE: append actions and messages, with the time.

{group_lines()}
{EXIT_CODES}"""
