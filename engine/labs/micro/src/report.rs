//! The output of a micro-benchmark, as text or as JSON. `docs/reference/formats.md`, "Micro-benchmarks", describes both.

use std::fmt::Write as _;
use std::io::{self, Write};

use etude_clock::seconds;
use etude_counters::{Count, Counts};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::exit::{Fail, IOERR, said};
use crate::usage::Usage;

/// A named list of what is known: the machine, the system, or what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// `hw_configuration`, `os_configuration` or `benchmark_configuration`.
    pub name: &'static str,
    /// In the order in which they are printed.
    pub members: Vec<(&'static str, Value)>,
}

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    pub bytes: u64,
    pub elapsed_ns: u64,
    pub usage: Option<Usage>,
    pub counts: Option<Counts>,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Quiet,
    /// The rates alone.
    Rates,
    /// The configuration and the times, too.
    Verbose,
    Json,
}

/// Prints the samples on standard output, below the configuration if the style is verbose; JSON has all containers.
/// Without samples, the containers alone are printed.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(containers: &[Container], samples: Option<&[Sample]>, style: Style) -> Result<(), Fail> {
    let text = match style {
        Style::Quiet => return Ok(()),
        Style::Rates => text(&[], samples.unwrap_or_default(), false),
        Style::Verbose => text(containers, samples.unwrap_or_default(), true),
        Style::Json => json(containers, samples),
    };
    say(&text)
}

/// Writes a text to standard output, all of it now.
///
/// # Errors
/// Standard output cannot be written.
pub fn say(text: &str) -> Result<(), Fail> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written
        .map_err(|error| Fail::new(IOERR, format!("write the result to standard output: {}", said(&error))))
}

impl Sample {
    /// KBytes/sec, as the lab counts them: 1 KByte is 1024 bytes. None if the clock did not move.
    pub fn bandwidth(&self) -> Option<f64> {
        let seconds = seconds(self.elapsed_ns);
        (self.elapsed_ns > 0).then(|| self.bytes as f64 / 1024.0 / seconds)
    }
}

/// The report for people; the lab's, where the lab has one.
pub fn text(containers: &[Container], samples: &[Sample], verbose: bool) -> String {
    let mut text = String::new();
    for container in containers {
        let _ = writeln!(text, "{}:", title(container.name));
        for (name, value) in container.members.iter().filter(|(_, value)| told(container, value)) {
            line(&mut text, name, value);
        }
    }
    for sample in samples {
        if verbose {
            let (seconds, ns) = (sample.elapsed_ns / 1_000_000_000, sample.elapsed_ns % 1_000_000_000);
            let _ = writeln!(text, "  time: {seconds}.{ns:09}");
        }
        if let Some(usage) = &sample.usage {
            usage_members(usage).iter().for_each(|(name, value)| line(&mut text, name, value));
        }
        if let Some(counts) = &sample.counts {
            counts_as_text(&mut text, counts);
        }
        let _ = match sample.bandwidth() {
            Some(rate) => writeln!(text, "{rate:.2} KBytes/sec"),
            None => writeln!(text, "- KBytes/sec: shorter than the clock can resolve; raise -t"),
        };
    }
    text
}

/// An option that was not given is not told; what the machine does not say is.
fn told(container: &Container, value: &Value) -> bool {
    !(value.is_null() && container.name == "benchmark_configuration")
}

fn title(name: &str) -> &str {
    match name {
        "hw_configuration" => "Hardware configuration",
        "os_configuration" => "Operating system configuration",
        "benchmark_configuration" => "Benchmark configuration",
        other => other,
    }
}

fn line(text: &mut String, name: &str, value: &Value) {
    let objects = value.as_array().filter(|list| list.iter().any(Value::is_object));
    let Some(objects) = objects else {
        let _ = writeln!(text, "  {name}: {}", plain(value));
        return;
    };
    let _ = writeln!(text, "  {name}:");
    for object in objects {
        let members = object.as_object().into_iter().flatten();
        let words: Vec<_> = members.map(|(name, value)| format!("{name} {}", plain(value))).collect();
        let _ = writeln!(text, "    {}", words.join(", "));
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(yes) => (if *yes { "yes" } else { "no" }).to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// The report for programs: one object on one line, its members in a fixed order.
pub fn json(containers: &[Container], samples: Option<&[Sample]>) -> String {
    let samples = samples.map(|samples| samples.iter().map(|sample| Members(sample_members(sample))));
    let report = Report { containers, samples: samples.map(Iterator::collect) };
    serde_json::to_string(&report).expect("its keys are texts") + "\n"
}

struct Report<'a> {
    containers: &'a [Container],
    samples: Option<Vec<Members>>,
}

/// An object that keeps its order.
struct Members(Vec<(&'static str, Value)>);

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        for container in self.containers {
            map.serialize_entry(container.name, &Members(container.members.clone()))?;
        }
        if let Some(samples) = &self.samples {
            map.serialize_entry("benchmark_samples", samples)?;
        }
        map.end()
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn sample_members(sample: &Sample) -> Vec<(&'static str, Value)> {
    let mut members = vec![("bandwidth", json!(sample.bandwidth())), ("time", time(sample.elapsed_ns))];
    members.extend(sample.usage.as_ref().map(usage_members).into_iter().flatten());
    if let Some(counts) = &sample.counts {
        let (instructions, cycles) = (counted(counts, "instructions"), counted(counts, "cycles"));
        let entries =
            counts.counts.iter().map(|count| (count.name.to_owned(), entry(count, instructions, cycles)));
        members.push(("counters", Value::Object(entries.collect())));
        members.push(("counter_notes", json!(counts.notes)));
    }
    members
}

fn usage_members(usage: &Usage) -> [(&'static str, Value); 6] {
    [
        ("utime", time(usage.utime_ns)),
        ("stime", time(usage.stime_ns)),
        ("nvcsw", json!(usage.nvcsw)),
        ("nivcsw", json!(usage.nivcsw)),
        ("inblock", json!(usage.inblock)),
        ("oublock", json!(usage.oublock)),
    ]
}

fn time(ns: u64) -> Value {
    json!(seconds(ns))
}

fn counted(counts: &Counts, name: &str) -> Option<f64> {
    let count = counts.counts.iter().find(|count| count.name == name)?;
    count.value.as_ref().ok().copied()
}

fn entry(count: &Count, instructions: Option<f64>, cycles: Option<f64>) -> Value {
    match &count.value {
        Ok(value) => json!({
            "count": value,
            "per_instruction": per(*value, instructions),
            "per_cycle": per(*value, cycles),
        }),
        Err(why) => json!({"count": null, "reason": why}),
    }
}

fn per(count: f64, of: Option<f64>) -> Option<f64> {
    of.filter(|of| *of > 0.0).map(|of| count / of)
}

fn counts_as_text(text: &mut String, counts: &Counts) {
    let (instructions, cycles) = (counted(counts, "instructions"), counted(counts, "cycles"));
    for count in &counts.counts {
        let _ = match &count.value {
            Err(why) => writeln!(text, "  {}: not counted: {why}", count.name),
            Ok(value) => {
                let shares = [(per(*value, instructions), "instruction"), (per(*value, cycles), "cycle")];
                let shares =
                    shares.iter().filter_map(|(share, of)| share.map(|share| format!("{share:.6} per {of}")));
                let shares: Vec<_> = shares.collect();
                let shares =
                    if shares.is_empty() { String::new() } else { format!(" ({})", shares.join(", ")) };
                writeln!(text, "  {}: {value:.0}{shares}", count.name)
            }
        };
    }
    for note in &counts.notes {
        let _ = writeln!(text, "  note: {note}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration() -> Container {
        Container {
            name: "benchmark_configuration",
            members: vec![("buffersize", json!(16384)), ("path", json!("a \"b\"")), ("cpu", Value::Null)],
        }
    }

    fn count(name: &'static str, value: Result<f64, String>) -> Count {
        Count { name, unit: "1", value }
    }

    fn counted_sample() -> Sample {
        let counts = vec![
            count("instructions", Ok(4000.0)),
            count("cycles", Ok(8000.0)),
            count("l1d_miss", Ok(40.0)),
            count("llc", Err("no such event".to_owned())),
        ];
        let usage = Usage { utime_ns: 1_500_000, nvcsw: 3, ..Usage::default() };
        Sample {
            bytes: 1 << 20,
            elapsed_ns: 500_000_000,
            usage: Some(usage),
            counts: Some(Counts { counts, notes: vec!["scaled"] }),
        }
    }

    #[test]
    fn the_rate_is_in_kbytes_of_1024() {
        let sample = Sample { bytes: 16 << 20, elapsed_ns: 12_345_678, ..Sample::default() };
        assert_eq!(text(&[], &[sample], false), "1327104.11 KBytes/sec\n");
        assert_eq!(Sample { bytes: 1, ..Sample::default() }.bandwidth(), None);
    }

    #[test]
    fn verbose_text_is_the_labs() {
        let sample = Sample { bytes: 1024, elapsed_ns: 2_000_000_001, ..Sample::default() };
        assert_eq!(
            text(&[configuration()], &[sample], true),
            "Benchmark configuration:\n  buffersize: 16384\n  path: a \"b\"\n  time: 2.000000001\n\
             0.50 KBytes/sec\n"
        );
    }

    #[test]
    fn text_has_usage_and_counts_with_the_reason_where_there_is_none() {
        let text = text(&[], &[counted_sample()], false);
        for line in [
            "  utime: 0.0015\n",
            "  nvcsw: 3\n",
            "  cycles: 8000 (2.000000 per instruction, 1.000000 per cycle)\n",
            "  l1d_miss: 40 (0.010000 per instruction, 0.005000 per cycle)\n",
            "  llc: not counted: no such event\n",
            "  note: scaled\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(text.ends_with("\n2048.00 KBytes/sec\n"), "{text}");
    }

    #[test]
    fn json_has_containers_and_samples_in_order() {
        let text = json(&[configuration()], Some(&[counted_sample(), Sample::default()]));
        assert!(text.starts_with("{\"benchmark_configuration\":{\"buffersize\":16384,\"path\":"), "{text}");
        let whole: Value = serde_json::from_str(&text).expect("it is JSON");
        let sample = &whole["benchmark_samples"][0];
        assert_eq!((&sample["bandwidth"], &sample["time"]), (&json!(2048.0), &json!(0.5)));
        assert_eq!((&sample["utime"], &sample["oublock"]), (&json!(0.0015), &json!(0)));
        let misses = json!({"count": 40.0, "per_instruction": 0.01, "per_cycle": 0.005});
        assert_eq!(sample["counters"]["l1d_miss"], misses);
        assert_eq!(sample["counters"]["llc"], json!({"count": null, "reason": "no such event"}));
        assert_eq!(whole["benchmark_samples"][1], json!({"bandwidth": null, "time": 0.0}));
    }

    #[test]
    fn without_samples_there_is_no_list_of_them() {
        assert!(!json(&[configuration()], None).contains("samples"));
        let caches = json!([{"level": 1, "size_bytes": 32768}, {"level": 2, "size_bytes": 1048576}]);
        let machine = Container { name: "hw_configuration", members: vec![("caches", caches)] };
        let expected = "Hardware configuration:\n  caches:\n    level 1, size_bytes 32768\n    level 2, size_bytes 1048576\n";
        assert_eq!(text(&[machine], &[], true), expected);
    }
}
