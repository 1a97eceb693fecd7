"""All that a script under way is: plain data that goes to JSON and back, so that CHECKPOINT can write it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Scope:
    """What the lines of a script see. `environment` holds the changes to the one that Étude was started in."""

    variables: dict[str, str] = field(default_factory=lambda: {"THREADS": "1", "RESTORE": "0"})
    environment: dict[str, str] = field(default_factory=dict)
    threads: int = 1

    def copy(self) -> Scope:
        return Scope(dict(self.variables), dict(self.environment), self.threads)


@dataclass
class Loop:
    """A FOR or FOREACH under way: its instruction, its text as it was expanded, and which of its values it is at."""

    start: int
    name: str
    text: str
    place: int = -1


OF_OUTPUT = 4
"""A metric of more members than this has a command of its own."""


@dataclass
class Running:
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
    """The boot loader's entry that its trials need; any if empty."""
    booted: bool = False
    """The machine was restarted for the trial in flight, …"""
    cooled: dict[str, Any] = field(default_factory=dict)
    """… and this was done about its caches: a row's `cache`."""
    timeout_s: float | None = None
    """Longest time of an EXEC."""
    metrics: list[list[str]] = field(default_factory=list)
    """Name, unit, expression, how workers are joined (may be left out), and a command of CLEANUP that prints it, if not
    EXEC does."""
    group: int | None = None
    """Tests of one INTERLEAVE share a number: their trials form blocks, and they are compared."""
    trial: int = 1
    block: int = 1
    order: int = 0
    set_aside: bool = False
    """The trial in flight only warms the caches."""
    warmed: bool = False
    prepared: bool = False
    """PRESETUP has run."""
    kept: int = 0
    made: int = 0
    failed: str | None = None
    """Why the trial in flight has failed, …"""
    failed_at: str = ""
    """… and at which directive."""
    failed_in_a_row: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    postcleanup: list[str] = field(default_factory=list)
    why: str = ""
    """Why it has enough trials, once it has."""


@dataclass
class Party:
    """A test of an INTERLEAVE with a scope of its own."""

    test: Running
    scope: Scope


@dataclass
class Interleave:
    """An INTERLEAVE under way: first its tests are collected, then they run in blocks."""

    start: int
    group: int
    parties: list[Party] = field(default_factory=list)
    block: int = 0
    order: list[int] = field(default_factory=list)
    """The parties of the block under way that are still to come; the first is running."""

    def __post_init__(self) -> None:
        if not all(0 <= index < len(self.parties) for index in self.order):
            raise ValueError("order names a test that is not there")


@dataclass
class State:
    """A script under way. `counter` is the index of the next instruction."""

    counter: int = 0
    scope: Scope = field(default_factory=Scope)
    loops: list[Loop] = field(default_factory=list)
    test: Running | None = None
    interleave: Interleave | None = None
    fastfail: str | None = None
    """None: go on after a failure; else stop, and run this line if there is one."""
    fixed: list[str] = field(default_factory=list)
    """Variables that the command line has set; the script's own settings of them do not count."""
    seed: int = 0
    """Of the random order within the blocks of INTERLEAVE."""
    groups: int = 0
    given_up: list[str] = field(default_factory=list)
    """Tests that ended because their trials kept failing."""
    quiet: list[str] = field(default_factory=list)
    """What QUIET has asked for, and is in force."""

    @property
    def party(self) -> Party | None:
        """The test of an INTERLEAVE that is running."""
        running = self.interleave
        return running.parties[running.order[0]] if running is not None and running.order else None

    @property
    def tests(self) -> list[Running]:
        """The test under way, or all of an INTERLEAVE."""
        parties = [party.test for party in self.interleave.parties] if self.interleave is not None else []
        return [*parties, *([self.test] if self.test else [])]

    @property
    def running(self) -> Running | None:
        """The test under way."""
        party = self.party
        return self.test if party is None else party.test

    @property
    def here(self) -> Scope:
        """What the next line sees."""
        party = self.party
        return self.scope if party is None else party.scope


def to_data(state: State) -> dict[str, Any]:
    """The state as JSON-able data."""
    return asdict(state)


def release(state: State) -> None:
    """Let a state begin the trial in flight anew, in a session in which nothing is set up."""
    for test in state.tests:
        test.prepared = test.warmed = False
        test.postcleanup = []
        forget_trial(test)


def after_boot(state: State) -> None:
    """Another boot than that in which the state was kept: nothing is warm any more."""
    for test in state.tests:
        test.warmed = False


def forget_trial(test: Running) -> None:
    """Make a test ready for its next trial."""
    test.booted, test.cooled = False, {}
    test.set_aside, test.failed, test.failed_at = False, None, ""
    test.rows, test.blocks = [], []
