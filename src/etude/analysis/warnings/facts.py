"""Facts of warnings: one dataclass for each kind of finding, with its figures and names."""

from __future__ import annotations

from dataclasses import dataclass

from etude.analysis.comparison import NoComparison
from etude.analysis.subject import ResultNote, WorkDifference


@dataclass(frozen=True)
class Facts:
    """Facts of one warning. Values are in `unit` where there is one, times in seconds, shares are relative."""


@dataclass(frozen=True)
class RecordedSentence(Facts):
    """A sentence that was recorded while measuring or reading, as it is."""

    text: str


@dataclass(frozen=True)
class FailedTrials(Facts):
    """Trials that failed."""

    ways: tuple[tuple[str, tuple[int, ...]], ...]
    """Ways of failing, each with the numbers of its trials."""
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
    """Excluded trials, by the recorded reason, which may be empty."""

    reasons: tuple[tuple[str, tuple[int, ...]], ...]
    of: int


@dataclass(frozen=True)
class NoValue(Facts):
    """No included trial has a value of the metric."""

    reason: str | None
    """Recorded reason."""
    kept: int
    joined: bool
    """True if the values of workers can be joined into one."""


@dataclass(frozen=True)
class TooFew(Facts):
    """Number of trials with a value, and the number that is needed."""

    count: int
    needed: int


@dataclass(frozen=True)
class MissingValues(Facts):
    """Included trials without a value."""

    count: int
    of: int


@dataclass(frozen=True)
class NoMatch(Facts):
    """A METRIC that found no number in any of `of` trials."""

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
    """Number of included trials."""


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
    """Memory of the machine, for a metric; None for a data set."""


@dataclass(frozen=True)
class TooShort(Facts):
    """A trial that lasts few ticks of its clock."""

    median: float
    tick: float
    unit: str
    ticks: float
    within: float
    """Relative precision with which a time should be known."""
    times: float
    """Factor by which a trial must be longer."""


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
    """True if consecutive trials tend to be in the same group."""


@dataclass(frozen=True)
class AutocorrelatedTrials(Facts):
    """Number of trials, and of independent trials that they are worth."""

    of: int
    worth: float


@dataclass(frozen=True)
class FarValues(Facts):
    """Values far from the others."""

    count: int
    of: int
    farthest: float
    """Relative distance of the farthest value from the median; 0 if unknown."""
    among: int | None = None
    """Number of trials on the examined level; None if that has all of them."""


@dataclass(frozen=True)
class SkewedValues(Facts):
    """Values that are not normal, by Shapiro and Wilk."""

    p: float
    skewness: float
    of: int
    power: float
    """Power of the check for this number of log-normal values of 30 %."""


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
    """First and last trials with a level shift."""

    first: int
    shift: float
    """Relative distance of the first trials from the median of the others."""
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
    """Loss per trial."""
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
    """Machines with a level shift, and the number of machines."""

    apart: tuple[MachineLevel, ...]
    of: int


@dataclass(frozen=True)
class UnknownMetric(Facts):
    """A metric to watch that does not exist, and the existing ones."""

    known: tuple[str, ...]


@dataclass(frozen=True)
class PrecisionUnknown(Facts):
    """A precision that cannot be checked."""

    target: float
    single: bool
    """True if there is only one value; else the mean is 0."""


@dataclass(frozen=True)
class NotConverged(Facts):
    """Relative margin of error of a mean, and its target."""

    width: float
    target: float
    more: int
    """Further trials that would reach it; 0 if unknown."""
    reachable: bool
    """True if `more` trials are worth recommending."""


@dataclass(frozen=True)
class OtherLoad(Facts):
    """CPU time of other processes."""

    cpu_s: float
    """CPU time per trial."""
    share: float
    """Mean number of CPUs that they used."""
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
    """Changes of a machine, and the sessions between or during which they happened."""

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
    """A time that cannot be distinguished from the shell's own start."""


@dataclass(frozen=True)
class AgainstItself(Facts):
    """The baseline against itself."""

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
    """Note on something left out on reading, or on an event while measuring."""

    note: ResultNote | NoComparison
