"""What warnings are about: one dataclass for each thing that is found, with its figures and names."""

from __future__ import annotations

from dataclasses import dataclass

from etude.analysis.comparison import NoComparison
from etude.analysis.output_equivalence import WorkDifference
from etude.analysis.subject import ResultNote


@dataclass(frozen=True)
class Facts:
    """What one warning has found. Values are in `unit` where there is one, times in seconds, shares are relative."""


@dataclass(frozen=True)
class RecordedSentence(Facts):
    """A sentence that was recorded while measuring or reading, as it is."""

    text: str


@dataclass(frozen=True)
class FailedTrials(Facts):
    """Trials that failed."""

    ways: tuple[tuple[str, tuple[int, ...]], ...]
    """How, and which trials."""
    of: int
    """All trials."""
    included: int


@dataclass(frozen=True)
class NoTrialMade(Facts):
    """No trial got as far as its command."""

    why: str
    log: str


@dataclass(frozen=True)
class ExcludedTrials(Facts):
    """Trials that were not kept, by the recorded reason, which may be empty."""

    reasons: tuple[tuple[str, tuple[int, ...]], ...]
    of: int


@dataclass(frozen=True)
class NoValue(Facts):
    """No kept trial has a value of the metric."""

    reason: str | None
    """The recorded one."""
    kept: int
    joined: bool
    """Whether the values of workers can be joined into one."""


@dataclass(frozen=True)
class TooFew(Facts):
    """Trials with a value, and how many it takes."""

    count: int
    needed: int


@dataclass(frozen=True)
class MissingValues(Facts):
    """Kept trials without a value."""

    count: int
    of: int


@dataclass(frozen=True)
class NoMatch(Facts):
    """A METRIC without a number in any of so many trials."""

    of: int
    reason: str


@dataclass(frozen=True)
class SeveralMatches(RecordedSentence):
    """The recorded sentence on the values that a METRIC found in one output."""


@dataclass(frozen=True)
class LimitReached(RecordedSentence):
    """The recorded reason why a test ended before its stop rule's aim."""


@dataclass(frozen=True)
class CachesDiffer(Facts):
    """Trials before which caches were not as declared."""

    declared: str
    wrong: tuple[tuple[int, str], ...]
    """Trial, and the recorded reason, which may be empty."""
    of: int
    """Kept trials."""


@dataclass(frozen=True)
class KernelComplained(Facts):
    """Messages of the kernel, and CPUs that were slowed down, by trial."""

    messages: tuple[tuple[int, str], ...]
    throttled: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DataNearMemory(Facts):
    """Data about as large as the memory: of the whole data set, or of a metric of a trial."""

    share: float
    memory_bytes: int | None = None
    """Of the machine, for a metric; None for a data set."""


@dataclass(frozen=True)
class TooShort(Facts):
    """A trial that lasts few ticks of its clock."""

    median: float
    tick: float
    unit: str
    ticks: float
    within: float
    """How well a time should be known, relative."""
    times: float
    """How many times as long it has to be."""


@dataclass(frozen=True)
class CoarseClock(Facts):
    """The step that values are counted in."""

    step: float
    unit: str
    of_time: bool


@dataclass(frozen=True)
class AllEqual(Facts):
    """One value for all trials."""

    of: int
    value: float
    unit: str


@dataclass(frozen=True)
class TwoGroups(Facts):
    """The trials near two centres."""

    few: int
    many: int
    low: float
    high: float
    unit: str
    of: int
    alike: bool
    """Whether neighbours tend to be in the same group."""


@dataclass(frozen=True)
class AutocorrelatedTrials(Facts):
    """How many independent trials so many are worth."""

    of: int
    worth: float


@dataclass(frozen=True)
class FarValues(Facts):
    """Values far from the others."""

    count: int
    of: int
    farthest: float
    """Off the median, relative; 0 where that is not known."""
    among: int | None = None
    """Trials on the level that they were looked for on, where those are not all."""


@dataclass(frozen=True)
class SkewedValues(Facts):
    """Values that are not normal, by Shapiro and Wilk."""

    p: float
    skewness: float
    of: int
    power: float
    """Of the check, at this number of log-normal values of 30 %."""


@dataclass(frozen=True)
class DriftOfValues(Facts):
    """A change over the series."""

    of: int
    change: float
    p: float
    slower: bool
    method: str
    sessions: int


@dataclass(frozen=True)
class NeverSteady(Facts):
    """A change that is left without the first and last trials."""

    first: int
    last: int
    change: float
    p: float


@dataclass(frozen=True)
class OtherEnds(Facts):
    """First and last trials on another level."""

    first: int
    shift: float
    """Of the first ones off the median of the others, relative."""
    last: int
    shift_last: float
    method: str
    """Empty: they are outliers, all at one end."""
    changes_at: tuple[int, ...]
    """Numbers of the trials at which a level begins."""


@dataclass(frozen=True)
class Leak(Facts):
    """Free memory that falls."""

    each: float
    """A trial."""
    low: float
    high: float
    total: float
    unit: str
    of: int
    p: float


@dataclass(frozen=True)
class MachineLevel(Facts):
    """A machine's values against those of the others."""

    machine: str
    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class MachinesApart(Facts):
    """Machines with another level, and how many there are."""

    apart: tuple[MachineLevel, ...]
    of: int


@dataclass(frozen=True)
class UnknownMetric(Facts):
    """A metric that was to be watched and is not there; those that there are."""

    known: tuple[str, ...]


@dataclass(frozen=True)
class PrecisionUnknown(Facts):
    """A precision of which it cannot be known whether it is reached."""

    target: float
    single: bool
    """Whether there is one value only; else the mean is 0."""


@dataclass(frozen=True)
class NotConverged(Facts):
    """The relative half width that a mean has and should have."""

    width: float
    target: float
    more: int
    """Further trials that would reach it; 0 where that is not known."""
    reachable: bool
    """Whether so many are worth advising."""


@dataclass(frozen=True)
class OtherLoad(Facts):
    """CPU time of other processes."""

    cpu_s: float
    """A trial."""
    share: float
    """CPUs."""
    of: int
    names: tuple[tuple[str, float], ...]
    """The processes that used most, and their seconds."""
    more: int


@dataclass(frozen=True)
class Busy(Facts):
    """The load of a machine at the start of a session."""

    load: float
    cpus: int
    session: int | None
    """None: there is only one."""


@dataclass(frozen=True)
class StateChange(Facts):
    """One member of a snapshot; its name is empty for a reboot."""

    what: str
    then: str = ""
    now: str = ""


@dataclass(frozen=True)
class MachineChanged(Facts):
    """What changed about a machine, and between which sessions, or during which one."""

    between: tuple[tuple[int, int], ...]
    changes: tuple[StateChange, ...]
    sessions: int


@dataclass(frozen=True)
class SeveralMachines(Facts):
    """Names of machines, and what differs between the first and the others."""

    hosts: tuple[str, ...]
    changes: tuple[StateChange, ...]


@dataclass(frozen=True)
class WithinShell(Facts):
    """A time that cannot be told from the shell's own start."""


@dataclass(frozen=True)
class AgainstItself(Facts):
    """The reference against itself."""

    ratio: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True)
class OtherWork(Facts):
    """A sign that tests did not do the same work."""

    difference: WorkDifference


@dataclass(frozen=True)
class NoteOnResult(Facts):
    """What was left out on reading, or happened while measuring."""

    note: ResultNote | NoComparison
