//! From what a launch gave to the rows that are reported.

use etude_clock::seconds;
use etude_launch::{Outcome, Status, Usage, WorkerOutcome, clock, time_of_day};
use etude_protocol::{Accept, Metrics, Row, Value};

use crate::meters::Reading;

/// The rows of one trial. Metrics of the trial stand in the row of worker 0.
pub(crate) fn rows(outcome: Outcome, reading: &Reading) -> Vec<Row> {
    let day_offset_ns = clock::realtime_ns().wrapping_sub(clock::monotonic_ns());
    let launches = outcome.workers.iter().map(|worker| worker.launches).max().unwrap_or(1).max(1);
    let mut rows = Vec::with_capacity(outcome.workers.len());
    for (index, worker) in outcome.workers.into_iter().enumerate() {
        let mut row = row(index, worker, day_offset_ns, reading.launcher_peak_bytes.clone());
        if index == 0 {
            reading.add_to(&mut row, &outcome.orphans, launches);
        }
        row.notes.extend_from_slice(&outcome.notes);
        rows.push(row);
    }
    rows
}

/// Whether a trial succeeded.
pub(crate) fn succeeded(rows: &[Row], accept: Accept) -> bool {
    let well = |row: &Row| {
        let ran = row.error.is_none() && !row.timed_out && !row.cancelled;
        ran && (accept == Accept::Any || row.exit_status == Some(0))
    };
    rows.iter().all(well)
}

fn row(index: usize, worker: WorkerOutcome, day_offset_ns: u64, floor_bytes: Result<u64, String>) -> Row {
    let (exit_status, signal) = match worker.status {
        Some(Status::Exited(status)) => (Some(status), None),
        Some(Status::Signalled(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    Row {
        worker: index,
        start: worker.start_ns.map(|start| time_of_day::utc(start.wrapping_add(day_offset_ns))),
        start_ns: worker.start_ns,
        inner: worker.launches.max(1),
        exit_status,
        signal,
        timed_out: worker.timed_out,
        cancelled: worker.cancelled,
        metrics: metrics(&worker, floor_bytes),
        error: worker.error,
        stdout: worker.stdout,
        stderr: worker.stderr,
        notes: Vec::new(),
    }
}

fn metrics(worker: &WorkerOutcome, floor_bytes: Result<u64, String>) -> Metrics {
    let why_not = match (&worker.error, worker.start_ns) {
        (Some(error), _) => Some(error.as_str()),
        (None, None) => Some("not started: cancelled"),
        (None, Some(_)) => None,
    };
    let known = |value: Value| why_not.map_or(Ok(value.per(worker.launches)), |why| Err(why.to_owned()));
    let unscaled = |bytes: u64| why_not.map_or(Ok(bytes), |why| Err(why.to_owned()));
    let Usage { user_us, system_us, .. } = worker.usage;
    let usage = &worker.usage;
    let mut metrics = Metrics::default();
    metrics.add("elapsed", "s", known(Value::Real(seconds(worker.elapsed_ns))));
    metrics.add("user", "s", known(Value::Real(user_us as f64 / 1e6)));
    metrics.add("system", "s", known(Value::Real(system_us as f64 / 1e6)));
    metrics.whole("peak_memory", "B", unscaled(usage.peak_memory_bytes));
    metrics.whole("peak_memory_floor", "B", unscaled(0).and(floor_bytes));
    for (name, count) in usage.counts() {
        metrics.add(name, "1", known(Value::Whole(count)));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: Status) -> WorkerOutcome {
        WorkerOutcome { start_ns: Some(5), status: Some(status), launches: 1, ..WorkerOutcome::default() }
    }

    #[test]
    fn what_succeeds_depends_on_what_is_accepted() {
        let zero = row(0, ended(Status::Exited(0)), 0, Ok(0));
        let one = row(0, ended(Status::Exited(1)), 0, Ok(0));
        let killed = row(0, ended(Status::Signalled(9)), 0, Ok(0));
        let late = Row { timed_out: true, ..zero.clone() };
        for (rows, accept, expected) in [
            (vec![zero.clone()], Accept::Zero, true),
            (vec![zero.clone(), one.clone()], Accept::Zero, false),
            (vec![one], Accept::Any, true),
            (vec![killed.clone()], Accept::Zero, false),
            (vec![killed], Accept::Any, true),
            (vec![late], Accept::Any, false),
        ] {
            assert_eq!(succeeded(&rows, accept), expected, "{rows:?} {accept:?}");
        }
    }

    #[test]
    fn what_was_not_measured_is_null_with_its_reason() {
        let worker = WorkerOutcome { error: Some("x: no such file".into()), ..WorkerOutcome::default() };
        let row = row(0, worker, 0, Ok(7));
        assert_eq!((row.start, row.exit_status, row.inner), (None, None, 1));
        for (name, metric) in &row.metrics.0 {
            assert!(
                matches!(metric, etude_protocol::Metric::Unknown { reason, .. } if reason == "x: no such file"),
                "{name}"
            );
        }
    }

    #[test]
    fn metrics_are_per_launch_but_peak_memory() {
        let usage = Usage { user_us: 10, peak_memory_bytes: 4096, minor_faults: 3, ..Usage::default() };
        let worker = WorkerOutcome { launches: 2, usage, ..ended(Status::Exited(0)) };
        let text = serde_json::to_string(&row(0, worker, 0, Ok(7)).metrics).unwrap();
        assert!(text.contains(r#""user":[5e-6,"s"]"#) || text.contains(r#""user":[0.000005,"s"]"#), "{text}");
        assert!(text.contains(r#""minor_faults":[1.5,"1"]"#), "{text}");
        assert!(text.contains(r#""peak_memory":[4096,"B"]"#), "{text}");
    }
}
