//! The time of gaps in which a thread waited for a CPU (run delay), from the notes of the recorder.
//!
//! The span between two notes tells how long the thread ran, how long it waited for a CPU, and how long its gaps were
//! together; not when within them it waited.

use std::collections::HashMap;

/// A note on a thread of the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub thread: u32,
    pub at_ns: u64,
    pub cpu_ns: u64,
    pub run_delay_ns: u64,
}

/// A gap that has become a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub step: usize,
    /// Its number in the script.
    pub thread: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// Between two samples of a thread.
#[derive(Debug)]
struct Span {
    begin_ns: u64,
    end_ns: u64,
    cpu_ns: u64,
    run_delay_ns: u64,
    /// Length of all gaps within it.
    gaps_ns: u64,
}

impl Span {
    /// How much of its gaps was waiting, ns. Waiting is spread evenly over gaps and calls; but of gaps that are longer
    /// than all the time on a CPU the rest was waiting, as far as there was so much.
    fn waited_ns(&self) -> f64 {
        let [gaps, delay] = [self.gaps_ns, self.run_delay_ns].map(|ns| ns as f64);
        let even = delay * gaps / (self.end_ns - self.begin_ns) as f64;
        even.max(gaps - self.cpu_ns as f64).min(delay).min(gaps)
    }
}

/// Waiting for a CPU within gaps.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Fraction of all gaps of which it is known; None where there are none.
    pub share: Option<f64>,
    /// Waiting before each step, ns.
    pub steps: Vec<(usize, u64)>,
}

/// Finds the waiting; `number` is the thread of the script for one of the trace. Gaps of each thread are in order.
pub(crate) fn waiting(samples: &[Sample], number: impl Fn(u32) -> Option<u32>, gaps: &[Gap]) -> Waiting {
    let mut spans = spans(samples, number);
    let mut parts = Vec::new();
    // What a file says may overlap.
    let mut latest: HashMap<u32, u64> = HashMap::new();
    for gap in gaps {
        let Some(spans) = spans.get_mut(&gap.thread) else { continue };
        let latest = latest.entry(gap.thread).or_default();
        let begin_ns = gap.begin_ns.max(*latest);
        *latest = gap.end_ns.max(*latest);
        if begin_ns >= gap.end_ns {
            continue;
        }
        let first = spans.partition_point(|span| span.end_ns <= begin_ns);
        for (place, span) in spans.iter_mut().enumerate().skip(first) {
            if span.begin_ns >= gap.end_ns {
                break;
            }
            let ns = gap.end_ns.min(span.end_ns) - begin_ns.max(span.begin_ns);
            span.gaps_ns += ns;
            parts.push((gap, place, ns));
        }
    }
    let all = || spans.values().flatten();
    let gaps_ns: f64 = all().map(|span| span.gaps_ns as f64).sum();
    let waited_ns: f64 = all().map(Span::waited_ns).sum();
    let steps = parts.into_iter().map(|(gap, place, ns)| {
        let span = &spans[&gap.thread][place];
        (gap.step, (ns as f64 * span.waited_ns() / span.gaps_ns as f64) as u64)
    });
    Waiting { share: (gaps_ns > 0.0).then(|| waited_ns / gaps_ns), steps: steps.collect() }
}

/// By thread of the script, in order, none over another.
fn spans(samples: &[Sample], number: impl Fn(u32) -> Option<u32>) -> HashMap<u32, Vec<Span>> {
    let mut samples = samples.to_vec();
    samples.sort_by_key(|sample| (sample.thread, sample.at_ns));
    let mut spans: HashMap<u32, Vec<Span>> = HashMap::new();
    for pair in samples.windows(2).filter(|pair| pair[0].thread == pair[1].thread) {
        let (Some(cpu_ns), Some(run_delay_ns)) = (
            pair[1].cpu_ns.checked_sub(pair[0].cpu_ns),
            pair[1].run_delay_ns.checked_sub(pair[0].run_delay_ns),
        ) else {
            continue; // another thread has its number
        };
        if let Some(number) = number(pair[0].thread) {
            let (begin_ns, end_ns) = (pair[0].at_ns, pair[1].at_ns);
            let span = Span { begin_ns, end_ns, cpu_ns, run_delay_ns, gaps_ns: 0 };
            spans.entry(number).or_default().push(span);
        }
    }
    for spans in spans.values_mut() {
        spans.sort_by_key(|span| span.begin_ns);
        let mut latest = 0;
        spans.retain_mut(|span| {
            span.begin_ns = span.begin_ns.max(latest);
            latest = span.end_ns.max(latest);
            span.begin_ns < span.end_ns
        });
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sample(thread: u32, at: u64, cpu: u64, delay: u64) -> Sample {
        Sample { thread, at_ns: at * MS, cpu_ns: cpu * MS, run_delay_ns: delay * MS }
    }

    fn gap(step: usize, thread: u32, begin: u64, end: u64) -> Gap {
        Gap { step, thread, begin_ns: begin * MS, end_ns: end * MS }
    }

    /// The share, and what each step waited, ms.
    fn found(samples: &[Sample], gaps: &[Gap]) -> (Option<f64>, Vec<(usize, u64)>) {
        let found = waiting(samples, |thread| (thread != 9).then_some(thread / 10), gaps);
        (found.share, found.steps.into_iter().map(|(step, ns)| (step, ns / MS)).collect())
    }

    #[test]
    fn waiting_is_that_of_gaps_alone() {
        // Gaps and calls that are alike wait alike.
        let alike =
            found(&[sample(0, 0, 0, 0), sample(0, 100, 60, 40)], &[gap(0, 0, 0, 20), gap(1, 0, 50, 80)]);
        assert_eq!(alike, (Some(0.4), vec![(0, 8), (1, 12)]));
        // Calls that slept for 80 ms did not wait in that time.
        let slept = found(&[sample(0, 0, 0, 0), sample(0, 100, 10, 10)], &[gap(0, 0, 0, 20)]);
        assert_eq!(slept, (Some(0.5), vec![(0, 10)]));
        // A disk's program whose gaps are short was not waiting in all of them: it was behind its calls.
        let disk = found(&[sample(0, 0, 0, 0), sample(0, 100, 3, 2)], &[gap(0, 0, 0, 2)]);
        assert_eq!(disk.0, Some(0.02));
        // A gap in which the thread slept itself waits for no longer than the thread did.
        assert_eq!(found(&[sample(0, 0, 0, 0), sample(0, 100, 1, 5)], &[gap(0, 0, 0, 100)]).0, Some(0.05));
    }

    #[test]
    fn a_gap_has_a_part_of_each_span_in_which_it_is() {
        let samples = [sample(0, 0, 5, 7), sample(0, 10, 15, 7), sample(0, 20, 15, 17)];
        assert_eq!(found(&samples, &[gap(4, 0, 5, 15)]), (Some(0.5), vec![(4, 0), (4, 5)]));
        // Behind an exec another thread of the trace is the same one; threads of which nothing is known count nowhere.
        let samples = [sample(0, 0, 0, 0), sample(0, 10, 0, 10), sample(1, 10, 0, 10), sample(1, 20, 10, 10)];
        let gaps = [gap(0, 0, 0, 20), gap(1, 1, 0, 1000)];
        assert_eq!(found(&samples, &gaps), (Some(0.5), vec![(0, 10), (0, 0)]));
        assert_eq!(found(&[], &gaps), (None, vec![]));
        assert_eq!(found(&[sample(9, 0, 0, 0), sample(9, 10, 0, 10)], &gaps), (None, vec![]));
    }

    #[test]
    fn what_cannot_have_been_counted_is_passed_over() {
        let back = [sample(0, 0, 10, 10), sample(0, 10, 0, 20), sample(0, 10, 0, 30)];
        assert_eq!(found(&back, &[gap(0, 0, 0, 10)]), (None, vec![]));
        let most = Sample { thread: 0, at_ns: u64::MAX, cpu_ns: u64::MAX, run_delay_ns: u64::MAX };
        let over = [Gap { step: 0, thread: 0, begin_ns: 0, end_ns: u64::MAX }; 3];
        let found = waiting(
            &[sample(0, 0, 0, 0), most, sample(1, 0, 0, 0), sample(1, 10, 0, 99)],
            |_| Some(0),
            &over,
        );
        assert_eq!(found.share, Some(1.0));
        assert_eq!(found.steps.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [0]);
    }
}
