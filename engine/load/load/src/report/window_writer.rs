//! How windows are told: one JSON object a line (docs/reference/formats.md, "Windows"; docs/howto/load.md).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::Receiver;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use crate::report::summary::Summary;
use crate::report::tally::{Failures, Kind, Tally};
use crate::report::{Line, Own};

/// The members of every workload's windows.
#[derive(Serialize)]
struct Shown<'a> {
    duration_s: f64,
    offered: u64,
    started: u64,
    completed: u64,
    failed: u64,
    mean_s: Option<f64>,
    latency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<BTreeMap<&'static str, ShownKind>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<&'a Failures>,
}

#[derive(Serialize)]
struct ShownKind {
    completed: u64,
    failed: u64,
    mean_s: Option<f64>,
    latency: Option<String>,
}

#[derive(Serialize)]
struct ShownWindow<'a> {
    #[serde(flatten)]
    of_all: Shown<'a>,
    lateness_p99_s: Option<f64>,
    #[serde(flatten)]
    own: Own,
}

/// Response times of all answers, those that came while draining among them; a quantile is None where so few came that it
/// would be the slowest.
#[derive(Serialize)]
struct ShownResponse {
    mean_s: Option<f64>,
    p50_s: Option<f64>,
    p90_s: Option<f64>,
    p99_s: Option<f64>,
    p99_9_s: Option<f64>,
    max_s: Option<f64>,
}

impl ShownResponse {
    fn new(whole: &Tally) -> ShownResponse {
        ShownResponse {
            mean_s: whole.all().mean_s(),
            p50_s: whole.quantile_s(0.5),
            p90_s: whole.quantile_s(0.9),
            p99_s: whole.quantile_s(0.99),
            p99_9_s: whole.quantile_s(0.999),
            max_s: whole.slowest_s(),
        }
    }
}

#[derive(Serialize)]
struct ShownSummary<'a> {
    summary: &'a Summary,
    response: ShownResponse,
    lateness_p99_s: Option<f64>,
    drained: Option<Shown<'a>>,
}

/// Makes text of windows.
struct Teller {
    kinds: Vec<&'static str>,
    serializer: V2DeflateSerializer,
    bytes: Vec<u8>,
}

impl Teller {
    fn shown<'a>(&mut self, tally: &'a Tally, duration_s: f64) -> Shown<'a> {
        let all = tally.all();
        let by = (self.kinds.len() > 1).then(|| {
            let names = self.kinds.clone().into_iter();
            let some = names.zip(&tally.kinds).filter(|(_, kind)| kind.completed + kind.failed > 0);
            some.map(|(name, kind)| (name, self.kind(kind))).collect()
        });
        Shown {
            duration_s,
            offered: tally.offered,
            started: tally.started,
            completed: tally.completed,
            failed: tally.failed,
            mean_s: all.mean_s(),
            latency: self.histogram(all.latency.as_ref()),
            by,
            failures: (tally.failed > 0).then_some(&tally.failures),
        }
    }

    fn kind(&mut self, kind: &Kind) -> ShownKind {
        ShownKind {
            completed: kind.completed,
            failed: kind.failed,
            mean_s: kind.mean_s(),
            latency: self.histogram(kind.latency.as_ref()),
        }
    }

    fn histogram(&mut self, latency: Option<&Histogram<u64>>) -> Option<String> {
        self.bytes.clear();
        self.serializer.serialize(latency?, &mut self.bytes).expect("memory takes it");
        Some(STANDARD.encode(&self.bytes))
    }
}

/// Writes lines as they come, each at once; a thread of its own, so that whoever reads slowly delays no request. It makes
/// way for the one that sends: its work of some milliseconds comes at once, when a window ends.
///
/// # Errors
/// Nobody reads.
pub(crate) fn write(lines: &Receiver<Line>, kinds: &[&'static str], mut out: impl Write) -> io::Result<()> {
    let bytes = Vec::new();
    let mut teller = Teller { kinds: kinds.to_vec(), serializer: V2DeflateSerializer::new(), bytes };
    let mut whole = Tally::new(kinds.len());
    for line in lines {
        let mut text = match line {
            Line::Window { duration_s, tally, own } => {
                whole.add(&tally);
                let of_all = teller.shown(&tally, duration_s);
                serde_json::to_string(&ShownWindow { of_all, lateness_p99_s: tally.lateness_p99_s(), own })?
            }
            Line::Summary { mut summary, drained } => {
                let lateness_p99_s = summary.judge(&mut whole, drained.as_ref().map(|(_, tally)| &**tally));
                let drained = drained.as_ref().map(|(duration_s, tally)| teller.shown(tally, *duration_s));
                let response = ShownResponse::new(&whole);
                serde_json::to_string(&ShownSummary { summary: &summary, response, lateness_p99_s, drained })?
            }
        };
        text.push('\n');
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

/// This thread is the last to get a CPU.
pub(crate) fn make_way() {
    // SAFETY: no pointers; on Linux it is about this thread alone (setpriority(2), "C library/kernel differences").
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use serde_json::{Value, json};

    use super::*;
    use crate::run::target::Failure;

    #[test]
    fn a_window_is_told_with_its_histogram_and_the_exact_mean() {
        let mut tally = Tally::new(1);
        for ns in [1_000_000, 3_000_001] {
            tally.answered(0, ns);
        }
        (0..98).for_each(|_| tally.late(10_000));
        (0..2).for_each(|_| tally.late(50_000));
        (tally.offered, tally.started) = (4, 3);
        tally.failed(None, &Failure::Timeout);
        let (sender, receiver) = std::sync::mpsc::channel();
        let own = Own { cpu: 0.125, outstanding: 1, waiting: 0, waited_s: Some(0.5), multiple: None };
        sender.send(Line::Window { duration_s: 1.0, tally: Box::new(tally), own }).unwrap();
        let own = Own { cpu: 0.0, outstanding: 0, waiting: 0, waited_s: None, multiple: None };
        sender.send(Line::Window { duration_s: 0.5, tally: Box::new(Tally::new(1)), own }).unwrap();
        drop(sender);
        let mut out = Vec::new();
        write(&receiver, &["get"], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let histogram: Histogram<u64> = {
            let bytes = STANDARD.decode(lines[0]["latency"].as_str().unwrap()).unwrap();
            Deserializer::new().deserialize(&mut &bytes[..]).unwrap()
        };
        assert_eq!((histogram.len(), histogram.equivalent(histogram.max(), 3_000_001)), (2, true));
        assert!((lines[0]["mean_s"].as_f64().unwrap() - 0.002_000_000_5).abs() < 1e-12);
        assert!((lines[0]["lateness_p99_s"].as_f64().unwrap() / 50e-6 - 1.0).abs() < 0.01);
        assert_eq!((&lines[0]["offered"], &lines[0]["failed"]), (&4.into(), &1.into()));
        assert_eq!((&lines[0]["cpu"], &lines[0]["outstanding"]), (&0.125.into(), &1.into()));
        assert_eq!((&lines[1]["mean_s"], &lines[1]["latency"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn kinds_stand_apart_where_there_are_several_and_failures_by_their_name() {
        let mut tally = Tally::new(3);
        tally.answered(0, 1_000_000);
        tally.answered(2, 2_000_000);
        tally.answered(2, 6_000_000);
        tally.failed(Some(2), &Failure::Status("ENOSPC"));
        tally.failed(None, &Failure::Timeout);
        let mut teller = Teller {
            kinds: vec!["read", "write", "create"],
            serializer: V2DeflateSerializer::new(),
            bytes: Vec::new(),
        };
        let mut whole = Tally::new(3);
        whole.add(&tally);
        whole.add(&tally);
        let shown = serde_json::to_value(teller.shown(&whole, 1.0)).unwrap();
        assert_eq!((&shown["completed"], &shown["failed"]), (&json!(6), &json!(4)));
        assert!((shown["mean_s"].as_f64().unwrap() - 0.003).abs() < 1e-12);
        let by = shown["by"].as_object().unwrap();
        assert_eq!(by.keys().collect::<Vec<_>>(), ["create", "read"], "what did not occur is left out");
        assert_eq!((&by["create"]["completed"], &by["create"]["failed"]), (&json!(4), &json!(2)));
        assert!((by["create"]["mean_s"].as_f64().unwrap() - 0.004).abs() < 1e-12);
        let counted = |text: &Value| {
            let bytes = STANDARD.decode(text.as_str().unwrap()).unwrap();
            Deserializer::new().deserialize::<u64, _>(&mut &bytes[..]).unwrap().len()
        };
        assert_eq!((counted(&shown["latency"]), counted(&by["create"]["latency"])), (6, 4));
        assert_eq!(
            (&shown["failures"]["errors"], &shown["failures"]["timeout"]),
            (&json!({"ENOSPC": 2}), &json!(2))
        );
    }

    #[test]
    fn the_last_line_tells_the_response_of_all_windows_and_of_what_came_while_draining() {
        let of = |range: std::ops::RangeInclusive<u64>| {
            let mut tally = Tally::new(1);
            range.for_each(|ms| tally.answered(0, ms * 1_000_000));
            Box::new(tally)
        };
        let plan = crate::run::plan::Plan::of_tests();
        let about =
            crate::report::summary::About { target: "http", workload: None, file_set: None, roll: None };
        let told = |windows: Vec<Box<Tally>>, drained: Option<(f64, Box<Tally>)>| -> Value {
            let (sender, receiver) = std::sync::mpsc::channel();
            for tally in windows {
                let own = Own { cpu: 0.1, outstanding: 0, waiting: 0, waited_s: None, multiple: None };
                sender.send(Line::Window { duration_s: 1.0, tally, own }).unwrap();
            }
            let summary = Box::new(Summary::new(&plan, about.clone()));
            sender.send(Line::Summary { summary, drained }).unwrap();
            drop(sender);
            let mut out = Vec::new();
            write(&receiver, &["get"], &mut out).unwrap();
            let last = String::from_utf8(out).unwrap().lines().last().unwrap().to_owned();
            serde_json::from_str::<Value>(&last).unwrap()["response"].clone()
        };
        let response = told(vec![of(1..=100), of(101..=150)], Some((0.5, of(151..=200))));
        let close = |name: &str, s: f64| {
            assert!((response[name].as_f64().unwrap() - s).abs() < 0.01 * s, "{name}: {response}");
        };
        close("mean_s", 0.1005);
        close("p50_s", 0.100);
        close("p99_s", 0.198);
        close("max_s", 0.200);
        assert_eq!(response["p99_9_s"], Value::Null);
        assert_eq!(told(vec![], None)["mean_s"], Value::Null);
    }
}
