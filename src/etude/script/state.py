"""Complete state of a running script: plain data that converts to JSON and back, for CHECKPOINT."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Scope:
    """Variables for the lines of a script. `environment` holds the changes to the one that Étude was started in."""

    variables: dict[str, str] = field(default_factory=lambda: {"THREADS": "1", "RESTORE": "0"})
    environment: dict[str, str] = field(default_factory=dict)
    threads: int = 1

    def copy(self) -> Scope:
        return Scope(dict(self.variables), dict(self.environment), self.threads)


@dataclass
class Loop:
    """A FOR or FOREACH under way: its instruction, its expanded text, and the index of its value."""

    start: int
    name: str
    text: str
    place: int = -1


OF_OUTPUT = 4
"""Length of a metric's list; a longer one has a command of its own."""


@dataclass
class RunningTest:
    """A test under way. `rows` are the measurements of the trial in flight; they are on disk once it has ended."""

    name: str
    begin: int
    threads: int
    minimum: int
    maximum: int | None = None
    budget_s: float | None = None
    step: int | None = None
    program: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    purpose: str = ""
    expect: str = ""
    cache: str = "none"
    data: list[str] = field(default_factory=list)
    """The data set of CACHE."""
    boot: str = ""
    """Boot loader entry that its trials need; any if empty."""
    booted: bool = False
    """True if the machine was restarted for the trial in flight."""
    cooled: dict[str, Any] = field(default_factory=dict)
    """Preparation of the caches for the trial in flight: a row's `cache`."""
    timeout_s: float | None = None
    """Maximum duration of an EXEC, s."""
    metrics: list[list[str]] = field(default_factory=list)
    """Name, unit, expression, join of workers (optional), and a command of CLEANUP that prints it, if EXEC does
    not."""
    group: int | None = None
    """Number shared by the tests of one INTERLEAVE: their trials form blocks, and they are compared."""
    trial: int = 1
    block: int = 1
    order: int = 0
    set_aside: bool = False
    """True if the trial in flight only warms the caches."""
    warmed: bool = False
    prepared: bool = False
    """True once PRESETUP has run."""
    kept: int = 0
    made: int = 0
    failed: str | None = None
    """Reason why the trial in flight has failed."""
    failed_at: str = ""
    """Directive at which the trial in flight has failed."""
    failed_in_a_row: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    postcleanup: list[str] = field(default_factory=list)
    why: str = ""
    """Reason why it has enough trials, if it has."""


@dataclass
class Party:
    """A test of an INTERLEAVE with its own scope."""

    test: RunningTest
    scope: Scope


@dataclass
class Interleave:
    """An INTERLEAVE under way: first its tests are collected, then they run in blocks."""

    start: int
    group: int
    parties: list[Party] = field(default_factory=list)
    block: int = 0
    order: list[int] = field(default_factory=list)
    """Remaining parties of the block under way; the first is running."""

    def __post_init__(self) -> None:
        if not all(0 <= index < len(self.parties) for index in self.order):
            raise ValueError("order names a test that is not there")


@dataclass
class State:
    """A script under way. `counter` is the index of the next instruction."""

    counter: int = 0
    scope: Scope = field(default_factory=Scope)
    loops: list[Loop] = field(default_factory=list)
    test: RunningTest | None = None
    interleave: Interleave | None = None
    fastfail: str | None = None
    """None: continue after a failure; else stop, and run this line if it is not empty."""
    fixed: list[str] = field(default_factory=list)
    """Variables set by the command line; the script's own assignments to them are ignored."""
    seed: int = 0
    """Seed of the random order within the blocks of INTERLEAVE."""
    groups: int = 0
    given_up: list[str] = field(default_factory=list)
    """Tests that ended because their trials kept failing."""
    quiet: list[str] = field(default_factory=list)
    """Words of QUIET that are in force."""

    @property
    def party(self) -> Party | None:
        """The running test of an INTERLEAVE."""
        running = self.interleave
        return running.parties[running.order[0]] if running is not None and running.order else None

    @property
    def tests(self) -> list[RunningTest]:
        """The test under way, or all of an INTERLEAVE."""
        parties = [party.test for party in self.interleave.parties] if self.interleave is not None else []
        return [*parties, *([self.test] if self.test else [])]

    @property
    def running(self) -> RunningTest | None:
        """The test under way."""
        party = self.party
        return self.test if party is None else party.test

    @property
    def here(self) -> Scope:
        """The scope of the next line."""
        party = self.party
        return self.scope if party is None else party.scope


def to_data(state: State) -> dict[str, Any]:
    """The state as JSON-able data."""
    return asdict(state)


def reset_trial(state: State) -> None:
    """Reset the trial in flight, for a session in which nothing is set up."""
    for test in state.tests:
        test.prepared = test.warmed = False
        test.postcleanup = []
        forget_trial(test)


def mark_cold(state: State) -> None:
    """Mark all tests as cold, after another boot than that in which the state was stored."""
    for test in state.tests:
        test.warmed = False


def forget_trial(test: RunningTest) -> None:
    """Prepare a test for its next trial."""
    test.booted, test.cooled = False, {}
    test.set_aside, test.failed, test.failed_at = False, None, ""
    test.rows, test.blocks = [], []
