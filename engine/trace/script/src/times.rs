//! When the steps of a script were, by what they took in the original.

use std::collections::HashMap;

use crate::model::{Action, Script};

/// When a step began and when it ended, since the script's beginning, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// A thread's way through its steps.
#[derive(Default)]
struct Thread {
    steps: Vec<usize>,
    next: usize,
    clock_ns: u64,
    process: u32,
}

/// What is known of a process.
#[derive(Default)]
struct Process {
    /// Threads that have not ended.
    live: usize,
    /// Whether it has been and is no more: before its fork it has no live threads either.
    ended: bool,
    end_ns: u64,
    /// The thread that waits for its end.
    waiting: Option<u32>,
}

/// The times of all steps. A thread goes on as soon as it can; who waits does so until the other has ended.
pub fn times(script: &Script) -> Vec<Span> {
    let mut spans = vec![Span::default(); script.steps.len()];
    let mut threads: HashMap<u32, Thread> = HashMap::from([(0, Thread::default())]);
    for (index, step) in script.steps.iter().enumerate() {
        threads.entry(step.thread).or_default().steps.push(index);
    }
    let mut processes = HashMap::from([(0, Process { live: 1, ..Process::default() })]);
    let mut ready = vec![0];
    while let Some(number) = ready.pop() {
        let mut thread = threads.remove(&number).unwrap_or_default();
        let blocked = go(script, &mut thread, &mut spans, &mut threads, &mut processes, &mut ready);
        if let Some(child) = blocked {
            processes.entry(child).or_default().waiting = Some(number);
            threads.insert(number, thread);
            continue;
        }
        let process = processes.entry(thread.process).or_default();
        process.live -= 1;
        process.end_ns = process.end_ns.max(thread.clock_ns);
        if process.live == 0 {
            process.ended = true;
            ready.extend(process.waiting.take());
        }
    }
    spans
}

/// When each step has its turn, ns: when it began, but never before the step above it.
pub fn turns(spans: &[Span]) -> Vec<u64> {
    let later = |latest: &mut u64, span: &Span| {
        *latest = span.begin_ns.max(*latest);
        Some(*latest)
    };
    spans.iter().scan(0, later).collect()
}

/// Takes a thread's steps up to its end, or until it has to wait for a process, which is returned.
fn go(
    script: &Script,
    thread: &mut Thread,
    spans: &mut [Span],
    threads: &mut HashMap<u32, Thread>,
    processes: &mut HashMap<u32, Process>,
    ready: &mut Vec<u32>,
) -> Option<u32> {
    while let Some(&index) = thread.steps.get(thread.next) {
        let begin_ns = thread.clock_ns;
        match &script.steps[index].action {
            Action::Compute(ns) => thread.clock_ns = begin_ns.saturating_add(*ns),
            Action::Call(called) => {
                thread.clock_ns = begin_ns.saturating_add(called.duration_ns.unwrap_or(0));
            }
            Action::Start(new) | Action::Fork(new) => {
                let process =
                    if matches!(script.steps[index].action, Action::Fork(_)) { *new } else { thread.process };
                processes.entry(process).or_default().live += 1;
                let child = threads.entry(*new).or_default();
                (child.clock_ns, child.process) = (begin_ns, process);
                ready.push(*new);
            }
            Action::Wait(child) => {
                let process = processes.entry(*child).or_default();
                if !process.ended {
                    return Some(*child);
                }
                thread.clock_ns = begin_ns.max(process.end_ns);
            }
            Action::Exec => {}
        }
        spans[index] = Span { begin_ns, end_ns: thread.clock_ns };
        thread.next += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn who_waits_goes_on_when_the_other_has_ended() {
        let text = "etude script 1\n0: compute(0.000000001)\n0: start(1)\n1: compute(0.000000010)\n1: fork(2)\n\
                    0: wait(2)\n0: sync() = 0 <0.000000005>\n1: exec()\n2: start(3)\n3: compute(0.000000100)\n";
        let script = parse("s", text.as_bytes()).unwrap().script;
        let spans: Vec<_> = times(&script).iter().map(|span| (span.begin_ns, span.end_ns)).collect();
        let wanted = [(0, 1), (1, 1), (1, 11), (11, 11), (1, 111), (111, 116), (11, 11), (11, 11), (11, 111)];
        assert_eq!(spans, wanted);
        assert_eq!(turns(&times(&script)), [0, 1, 1, 11, 11, 111, 111, 111, 111]);
    }

    #[test]
    fn a_process_ends_with_whichever_of_its_threads_ends_last() {
        for (parent, child, end) in [("0.000000100", "0.000000001", 100), ("0.000000001", "0.000000100", 100)]
        {
            let text = format!(
                "etude script 1\n0: fork(1)\n1: start(2)\n1: compute({parent})\n2: compute({child})\n0: wait(1)\n"
            );
            let script = parse("s", text.as_bytes()).unwrap().script;
            assert_eq!(times(&script).last().map(|span| span.end_ns), Some(end));
        }
    }
}
