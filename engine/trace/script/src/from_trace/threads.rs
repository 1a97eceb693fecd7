//! The steps of each thread: what it did not do by calls becomes `compute`.

use std::collections::{BTreeMap, HashMap};

use etude_trace::Event;

use crate::from_trace::run_delay::{Gap, Sample, waiting};
use crate::model::{Action, Called, Step};

/// One thread of the script.
struct Thread {
    /// When its last step was over.
    last_ns: u64,
    /// What the recorder itself took since.
    owed_ns: f64,
    /// Which one of the trace it is, as far as is known.
    traced: Option<u32>,
    /// Processes that ended since, and when: it waited for them unless it was in a call then.
    ends: Vec<(u64, u32)>,
}

#[derive(Default)]
struct Process {
    /// Its threads in the script; the first is that of the process.
    threads: Vec<u32>,
    /// How many it has had since it became this program.
    since_exec: u32,
    /// The process that started it, and that one's first thread: its number may be given again.
    parent: Option<(u32, u32)>,
}

/// All threads of the script that is made.
pub(crate) struct Threads {
    costs: BTreeMap<String, f64>,
    holds: Holds,
    waits: bool,
    /// None: nobody wants them.
    steps: Option<Vec<Step>>,
    /// Steps that are gaps.
    gaps: Vec<Gap>,
    threads: Vec<Thread>,
    processes: HashMap<u32, Process>,
    /// Those of the trace: which ones of the script they are.
    numbers: HashMap<u32, u32>,
}

impl Threads {
    pub fn new(costs: BTreeMap<String, f64>, waits: bool) -> Threads {
        let (steps, gaps, threads) = (Some(Vec::new()), Vec::new(), Vec::new());
        let (holds, processes, numbers) = (Holds::default(), HashMap::new(), HashMap::new());
        Threads { costs, holds, waits, steps, gaps, threads, processes, numbers }
    }

    /// Times for which the recorder held threads: gaps are shorter by them.
    pub fn held(&mut self, held: Vec<Held>) {
        self.holds = Holds::new(held);
    }

    /// Keeps no steps.
    pub fn forget(&mut self) {
        self.steps = None;
    }

    pub fn process(&mut self, process: u32, parent: Option<u32>, at_ns: u64, busy: &[u32]) {
        let number = self.add(at_ns);
        if number > 0 {
            // Whose parent is not known was started by somebody.
            let starter = self.idle(parent.unwrap_or(0), at_ns, busy);
            self.reach(starter, at_ns);
            self.push(starter, Action::Fork(number));
        }
        let parent = parent.and_then(|parent| Some((parent, self.processes.get(&parent)?.threads[0])));
        self.processes.insert(process, Process { threads: vec![number], since_exec: 0, parent });
    }

    pub fn thread(&mut self, thread: u32, process: u32, at_ns: u64, busy: &[u32]) {
        if !self.processes.contains_key(&process) {
            self.process(process, None, at_ns, busy);
        }
        let known = self.processes.get_mut(&process).expect("it was begun");
        known.since_exec += 1;
        if known.since_exec == 1 {
            let number = known.threads[0];
            self.is(thread, number);
            // Between both the recorder was at work.
            self.threads[number as usize].last_ns = at_ns;
            return;
        }
        let starter = self.idle(process, at_ns, busy);
        self.reach(starter, at_ns);
        let number = self.add(at_ns);
        self.push(starter, Action::Start(number));
        self.processes.get_mut(&process).expect("it was begun").threads.push(number);
        self.is(thread, number);
    }

    /// A thread of the trace is this one of the script from now on.
    fn is(&mut self, thread: u32, number: u32) {
        self.numbers.insert(thread, number);
        self.threads[number as usize].traced = Some(thread);
    }

    pub fn exec(&mut self, process: u32, thread: Option<u32>, at_ns: u64, until_ns: u64) {
        let Some(known) = self.processes.get_mut(&process) else { return };
        known.threads.truncate(1);
        known.since_exec = 1;
        let number = known.threads[0];
        // The first exec of all is that of the recorder.
        if number > 0 || self.steps.as_ref().is_some_and(|steps| !steps.is_empty()) {
            self.reach(number, at_ns);
            self.push(number, Action::Exec);
        }
        if let Some(thread) = thread {
            self.is(thread, number);
        }
        self.threads[number as usize].last_ns = until_ns;
    }

    pub fn ended(&mut self, process: u32, at_ns: u64) {
        let Some(known) = self.processes.remove(&process) else { return };
        let first = known.threads[0];
        self.reach(first, at_ns);
        if let Some((parent, its_first)) = known.parent.filter(|_| self.waits)
            && let Some([waiter]) = self.processes.get(&parent).map(|parent| &parent.threads[..])
            && let waiter = *waiter
            && waiter == its_first
            && self.threads[waiter as usize].last_ns <= at_ns
        {
            self.threads[waiter as usize].ends.push((at_ns, first));
        }
    }

    /// Those that are left when the trace ends.
    pub fn finish(&mut self, end_ns: u64) {
        let mut left: Vec<u32> = self.processes.keys().copied().collect();
        left.sort_unstable();
        for process in left.into_iter().rev() {
            self.ended(process, end_ns);
        }
    }

    /// A thread that nothing told of begins with its first call.
    pub fn meets(&mut self, thread: u32, process: u32, event: &Event) {
        if !self.numbers.contains_key(&thread) {
            self.thread(thread, process, event.start_ns, &[]);
        }
    }

    /// What recording this call took.
    pub fn pays(&mut self, thread: u32, event: &Event) {
        let cost = self.costs.get(event.call.name()).or_else(|| self.costs.get("*"));
        self.threads[self.numbers[&thread] as usize].owed_ns += cost.copied().unwrap_or(0.0);
    }

    /// The place of its step, where steps are kept.
    pub fn call(&mut self, thread: u32, event: &Event, called: Called) -> Option<usize> {
        let number = self.numbers[&thread];
        self.reach(number, event.start_ns);
        self.push(number, Action::Call(called));
        let last = &mut self.threads[number as usize].last_ns;
        *last = event.end_ns().max(*last);
        self.steps.as_ref().map(|steps| steps.len() - 1)
    }

    /// What came of a call, which is known only now.
    pub fn answer(&mut self, step: usize, result: i64) {
        if let Some(steps) = &mut self.steps
            && let Action::Call(called) = &mut steps[step].action
        {
            called.result = result;
        }
    }

    /// Which share of the gaps was waiting for a CPU, where it is known; with `leave_out` gaps are shorter by that.
    pub fn run_delay(&mut self, samples: &[Sample], leave_out: bool) -> Option<f64> {
        let found = waiting(samples, |thread| self.numbers.get(&thread).copied(), &self.gaps);
        if let Some(steps) = self.steps.as_mut().filter(|_| leave_out) {
            for (step, waited_ns) in found.steps {
                if let Action::Compute(ns) = &mut steps[step].action {
                    *ns = ns.saturating_sub(waited_ns);
                }
            }
            steps.retain(|step| step.action != Action::Compute(0));
        }
        found.share
    }

    pub fn take_steps(&mut self) -> Vec<Step> {
        self.steps.take().unwrap_or_default()
    }

    /// A thread of that process that is in no call, its first one before all.
    fn idle(&self, process: u32, at_ns: u64, busy: &[u32]) -> u32 {
        let busy: Vec<u32> = busy.iter().filter_map(|thread| self.numbers.get(thread)).copied().collect();
        let threads = self.processes.get(&process).map_or(&[][..], |process| &process.threads);
        let idle = |number: &&u32| !busy.contains(number) && self.threads[**number as usize].last_ns <= at_ns;
        threads.iter().find(idle).or(threads.first()).copied().unwrap_or(0)
    }

    /// Nothing of the thread's own was done up to a time: it waited for processes, or computed.
    fn reach(&mut self, number: u32, at_ns: u64) {
        let thread = &mut self.threads[number as usize];
        let mut done = Vec::new();
        for (ended_ns, process) in std::mem::take(&mut thread.ends) {
            // Else it was in a call when that ended.
            if thread.last_ns <= ended_ns && ended_ns <= at_ns {
                (thread.last_ns, thread.owed_ns) = (ended_ns, 0.0);
                done.push(Action::Wait(process));
            }
        }
        let begin_ns = thread.last_ns;
        let held_ns = thread.traced.map_or(0, |traced| self.holds.within(traced, begin_ns, at_ns));
        let gap = at_ns.saturating_sub(begin_ns).saturating_sub(held_ns) as f64 - thread.owed_ns;
        thread.owed_ns = 0.0;
        thread.last_ns = thread.last_ns.max(at_ns);
        done.into_iter().for_each(|action| self.push(number, action));
        if gap >= 1.0 {
            if let Some(steps) = &self.steps {
                self.gaps.push(Gap { step: steps.len(), thread: number, begin_ns, end_ns: at_ns });
            }
            self.push(number, Action::Compute(gap as u64));
        }
    }

    fn push(&mut self, thread: u32, action: Action) {
        if let Some(steps) = &mut self.steps {
            steps.push(Step { thread, action });
        }
    }

    fn add(&mut self, at_ns: u64) -> u32 {
        self.threads.push(Thread { last_ns: at_ns, owed_ns: 0.0, traced: None, ends: Vec::new() });
        self.threads.len() as u32 - 1
    }
}

/// A thread of the trace stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub thread: u32,
    pub from_ns: u64,
    pub until_ns: u64,
}

/// The time for which the recorder held threads, which is in their gaps and was none of the program's. By thread of the
/// trace: sorted, none over another, and how many are behind us.
#[derive(Debug, Default)]
struct Holds(HashMap<u32, (Vec<Held>, usize)>);

impl Holds {
    fn new(mut held: Vec<Held>) -> Holds {
        held.sort_by_key(|each| (each.thread, each.from_ns));
        let mut holds: HashMap<u32, (Vec<Held>, usize)> = HashMap::new();
        for mut each in held {
            let (of_thread, _) = holds.entry(each.thread).or_default();
            each.from_ns = each.from_ns.max(of_thread.last().map_or(0, |last| last.until_ns));
            if each.from_ns < each.until_ns {
                of_thread.push(each);
            }
        }
        Holds(holds)
    }

    /// For how long a thread was held within a gap. Gaps of a thread are asked for in order.
    fn within(&mut self, thread: u32, begin_ns: u64, end_ns: u64) -> u64 {
        let Some((held, next)) = self.0.get_mut(&thread) else { return 0 };
        while held.get(*next).is_some_and(|each| each.until_ns <= begin_ns) {
            *next += 1;
        }
        let over = held[*next..].iter().take_while(|each| each.from_ns < end_ns);
        over.map(|each| each.until_ns.min(end_ns) - each.from_ns.max(begin_ns)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_taken_off_once() {
        let held = |thread, from_ns, until_ns| Held { thread, from_ns, until_ns };
        // The second lies over the first, the third is none, the last is another thread's.
        let all = vec![held(0, 10, 20), held(0, 15, 30), held(0, 25, 25), held(0, 50, 90), held(1, 0, 100)];
        let mut holds = Holds::new(all);
        assert_eq!(holds.within(0, 0, 12), 2);
        assert_eq!(holds.within(0, 12, 40), 18);
        assert_eq!(holds.within(0, 60, 70), 10); // a call that ended within it
        assert_eq!(holds.within(0, 80, 200), 10);
        assert_eq!(holds.within(0, 200, 300), 0);
        assert_eq!(holds.within(2, 0, 300), 0);
    }
}
