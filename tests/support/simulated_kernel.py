"""A kernel in which nothing runs by itself: processes, threads, their numbers, and what it tells of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from etude.probes.accounting import TICK_NS, Process, Snapshot
from etude.probes.taskstats import Exit

INIT, KTHREADD, OWN, ENGINE = 1, 2, 10, 11
FREE = range(20, 28)
"""Few numbers, so that they are soon used again."""


@dataclass
class Thread:
    number: int
    began_ns: int
    cpu_ns: int = 1
    """A thread that is there has run."""


@dataclass
class Task:
    """A process. `measured` is the truth of what it was born as: a descendant of the engine, or not."""

    pid: int
    name: str
    parent: int
    began_ns: int
    measured: bool
    threads: dict[int, Thread]
    dead_ns: int = 0
    leader_ended: bool = False
    zombie: bool = False

    @property
    def total_ns(self) -> int:
        return self.dead_ns + sum(thread.cpu_ns for thread in self.threads.values())

    @property
    def running(self) -> list[Thread]:
        return [t for t in self.threads.values() if not (t.number == self.pid and self.leader_ended)]


@dataclass
class Kernel:
    """Every process has a name of its own: `born` counts them."""

    now_ns: int = 50 * TICK_NS
    tasks: dict[int, Task] = field(default_factory=dict)
    exits: list[Exit] = field(default_factory=list)
    ever: list[Task] = field(default_factory=list)
    past_ns: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pid, name, parent in ((INIT, "init", 0), (KTHREADD, "kthreadd", 0), (OWN, "python", INIT)):
            self._begin(pid, name, parent, False)
        self._begin(ENGINE, "etude-engine", OWN, False)

    def _begin(self, pid: int, name: str, parent: int, measured: bool) -> None:
        task = Task(pid, name, parent, self.now_ns, measured, {pid: Thread(pid, self.now_ns)})
        self.tasks[pid] = task
        self.ever.append(task)

    def _free(self) -> Iterator[int]:
        taken = {number for task in self.tasks.values() for number in task.threads}
        return (number for number in FREE if number not in taken and number not in self.tasks)

    def _pick(self, number: int) -> Task:
        alive = [task for task in self.tasks.values() if not task.zombie]
        return alive[number % len(alive)]

    def spawn(self, who: int) -> None:
        parent = self._pick(who)
        if (pid := next(self._free(), None)) is not None:
            measured = parent.measured or parent.pid == ENGINE
            self._begin(pid, f"p{len(self.ever)}", parent.pid, measured)

    def clone(self, who: int) -> None:
        task = self._pick(who)
        if task.pid in FREE and (number := next(self._free(), None)) is not None:
            task.threads[number] = Thread(number, self.now_ns)

    def run(self, who: int, ns: int) -> None:
        task = self._pick(who)
        running = task.running
        running[ns % len(running)].cpu_ns += ns
        self.now_ns += ns

    def end_thread(self, who: int, which: int) -> None:
        """One thread ends, with a record; the last one ends its process, whose children go to a reaper."""
        task = self._pick(who)
        if task.pid not in FREE:
            return
        running = task.running
        thread = running[which % len(running)]
        last = len(running) == 1
        self.exits.append(
            Exit(
                thread.number,
                task.pid,
                task.parent,
                task.name,
                (self.now_ns - thread.began_ns) // 1000,
                thread.cpu_ns,
                last,
            )
        )
        if thread.number == task.pid:
            task.leader_ended = True
        else:
            task.dead_ns += task.threads.pop(thread.number).cpu_ns
        if last:
            task.zombie = True
            for child in self.tasks.values():
                if child.parent == task.pid:
                    child.parent = ENGINE if task.measured else INIT

    def reap(self, who: int) -> None:
        zombies = [task for task in self.tasks.values() if task.zombie]
        if zombies:
            del self.tasks[zombies[who % len(zombies)].pid]
            self.now_ns += 2 * TICK_NS  # before a number is used again, all others have been

    def snapshot(self) -> Snapshot:
        return Snapshot(
            self.now_ns // TICK_NS,
            {
                task.pid: Process(
                    task.pid,
                    task.name,
                    task.leader_ended,
                    task.parent,
                    task.total_ns // TICK_NS,
                    task.began_ns // TICK_NS,
                    {thread.number: thread.cpu_ns for thread in task.threads.values()},
                )
                for task in self.tasks.values()
            },
        )

    def mark(self) -> None:
        """From here on, `used` counts; and no record of before is known."""
        self.past_ns = {task.name: task.total_ns for task in self.ever}
        self.exits.clear()

    def used(self, *, measured: bool = False) -> dict[str, int]:
        """The truth: ns of CPU time by name since the mark, without those that had none."""
        used = {
            task.name: task.total_ns - self.past_ns.get(task.name, 0)
            for task in self.ever
            if task.measured is measured
        }
        return {name: ns for name, ns in used.items() if ns}
