//! Whatever the lines are: the same as a plain reading of each as a JSON value, or that line is named.

mod common;

use std::collections::BTreeMap;

use common::read;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

const COUNTS: [&str; 7] = ["trial", "block", "order", "worker", "sitting", "start_ns", "inner"];
const FLAGS: [(&str, u64); 3] = [("kept", 1), ("timed_out", 2), ("cancelled", 4)];

/// What a line means, read the slow way; None where it is no measurement.
struct Plain {
    whole: Vec<i64>,
    texts: Vec<Value>,
    status: i64,
    flags: u64,
    metrics: BTreeMap<(String, String), f64>,
    /// How many lines its trial has.
    rows: Option<u64>,
}

/// Members of a line without `rows`.
#[rustfmt::skip]
const KNOWN: [&str; 25] = [
    "test", "trial", "block", "order", "worker", "host", "sitting", "boot_id", "command", "start", "start_ns",
    "inner", "exit_status", "signal", "timed_out", "cancelled", "error", "kept", "why", "metrics", "cache", "stdout",
    "stderr", "windows", "notes",
];

fn plain(line: &[u8]) -> Option<Plain> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let line = line.as_object()?;
    let count = |name: &str| line.get(name)?.as_i64().filter(|number| *number >= 0);
    let or_null = |name: &str| if line.get(name)?.is_null() { Some(-1) } else { count(name) };
    let text = |name: &str, null: bool| line.get(name).filter(|v| v.is_string() || (null && v.is_null()));
    let flag = |name: &str| line.get(name)?.as_bool();
    let absent = |name: &str, good: &dyn Fn(&Value) -> bool| line.get(name).is_none_or(good);

    let whole = COUNTS.iter().map(|name| if *name == "start_ns" { or_null(name) } else { count(name) });
    let whole: Vec<i64> = whole.collect::<Option<_>>()?;
    let (exit_status, signal) = (or_null("exit_status")?, or_null("signal")?);
    text("start", true)?;
    let command = line.get("command")?.as_array()?;
    let most = 1 << 62;
    let stream = |value: &Value| {
        value.is_null()
            || ((value["bytes"].is_i64() || value["bytes"].is_u64())
                && value["sha256"].is_string()
                && value["tail"].is_string())
    };
    let good = whole[6] > 0
        && whole[0].max(whole[3]).max(signal) < most
        && command.iter().all(Value::is_string)
        && absent("cache", &|value| value.is_null() || cache(value))
        && absent("stdout", &stream)
        && absent("stderr", &stream)
        && absent("windows", &|value| value.is_null() || value.is_array())
        && absent("notes", &Value::is_array)
        && absent("rows", &|value| value.as_i64().is_some_and(|rows| rows > 0));
    if !good {
        return None;
    }
    let mut flags = if signal >= 0 { 8 } else { 0 };
    for (name, bit) in FLAGS {
        flags |= if flag(name)? { bit } else { 0 };
    }
    let windows = line.get("windows").and_then(Value::as_array).is_some_and(|windows| !windows.is_empty());
    let uncommon = windows
        || ["cache", "stdout", "stderr"].iter().any(|name| line.get(*name).is_some_and(Value::is_object))
        || line.keys().any(|name| name == "rows" || !KNOWN.contains(&name.as_str()));
    let mut texts: Vec<Value> =
        ["test", "host", "boot_id"].iter().map(|name| text(name, false).cloned()).collect::<Option<_>>()?;
    texts.push(serde_json::to_string(command).unwrap().into());
    texts.extend(["why", "error"].iter().map(|name| text(name, true).cloned()).collect::<Option<Vec<_>>>()?);
    Some(Plain {
        whole,
        texts,
        status: if signal < 0 { exit_status } else { 128 + signal },
        flags: flags | if windows { 16 } else { 0 } | if uncommon { 32 } else { 0 },
        metrics: metrics(line.get("metrics")?)?,
        rows: line.get("rows").and_then(Value::as_u64),
    })
}

fn cache(value: &Value) -> bool {
    let ways = ["none", "warm", "chill", "drop", "remount", "remount+chill", "reboot", "reboot+chill"];
    let way = |value: &Value| value.as_str().is_some_and(|way| ways.contains(&way));
    value.is_object() && way(&value["declared"]) && (value["performed"].is_null() || way(&value["performed"]))
}

fn metrics(value: &Value) -> Option<BTreeMap<(String, String), f64>> {
    let mut found = BTreeMap::new();
    for (name, metric) in value.as_object()? {
        let metric = metric.as_array()?;
        let unit = metric.get(1)?.as_str()?;
        match metric.first()? {
            Value::Number(number) => {
                found.insert((name.clone(), unit.to_owned()), number.as_f64()?);
            }
            Value::Null => drop(metric.get(2)?.as_str()?),
            _ => return None,
        }
    }
    Some(found)
}

/// Reads the lines both ways.
fn check(lines: &[Vec<u8>], chunk: u64) -> Result<(), TestCaseError> {
    let text: Vec<u8> = lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    let found = read(&text, None, None, chunk);
    let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    let lines = &lines[..lines.len() - 1];
    if lines.iter().any(|line| line.windows(2).any(|two| two == b"-0")) {
        return Ok(()); // the plain reading takes -0 for a real number
    }
    let plain: Vec<Option<Plain>> = lines.iter().map(|line| plain(line)).collect();
    let wrong = plain.iter().position(Option::is_none).map(|line| line as u64 + 1);
    if let Some(line) = found.wrong() {
        let reason = found.index["wrong"]["reason"].as_str().unwrap_or_default();
        let at = usize::try_from(found.index["wrong"]["at"].as_u64().unwrap()).unwrap();
        prop_assert_eq!(lines[..line as usize - 1].iter().map(|line| line.len() + 1).sum::<usize>(), at);
        prop_assert!(
            wrong == Some(line) || reason.contains("twice"),
            "{} in line {line}, not {wrong:?}",
            reason
        );
        return Ok(());
    }
    prop_assert_eq!(wrong, None, "{}", text.escape_ascii());
    let mut rows: Vec<Plain> = plain.into_iter().flatten().collect();
    if let Some(last) = rows.last() {
        let trial = last.whole[0];
        let of_it = rows.iter().rev().take_while(|row| row.whole[0] == trial).count();
        let left_out = last.rows.map_or(0, |expected| of_it % expected as usize);
        rows.truncate(rows.len() - left_out);
    }
    prop_assert_eq!(found.rows(), rows.len());
    for (index, name) in COUNTS.iter().enumerate() {
        prop_assert_eq!(
            found.column(name),
            rows.iter().map(|row| json!(row.whole[index])).collect::<Vec<_>>()
        );
    }
    for (index, name) in ["test", "host", "boot", "command", "why", "error"].iter().enumerate() {
        prop_assert_eq!(
            found.column(name),
            rows.iter().map(|row| row.texts[index].clone()).collect::<Vec<_>>()
        );
    }
    prop_assert_eq!(found.column("status"), rows.iter().map(|row| json!(row.status)).collect::<Vec<_>>());
    prop_assert_eq!(found.column("flags"), rows.iter().map(|row| json!(row.flags)).collect::<Vec<_>>());
    let mut metrics: BTreeMap<(String, String), Vec<Option<f64>>> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        for (key, value) in &row.metrics {
            let empty = || vec![None; rows.len()];
            metrics.entry(key.clone()).or_insert_with(empty)[number] = Some(*value);
        }
    }
    prop_assert_eq!(found.metrics(), metrics);
    Ok(())
}

fn or_null<T: std::fmt::Debug + Clone>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(value)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-1e6..1e6f64).prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |value| serde_json::Number::from_f64(value).map(Value::from)),
        any::<u64>().prop_map(Value::from),
        (0..5000u64).prop_map(Value::from),
        Just(Value::Null),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["elapsed", "user", "peak_memory", "rate", "é \"\\"]).prop_map(str::to_owned),
        1 => any::<String>()
    ]
}

prop_compose! {
    fn measurement()(
        numbers in vec(0..3i64, 5),
        (start_ns, inner, exit_status, signal, rows) in
            (or_null(any::<i64>().prop_map(|n| n & i64::MAX)), 1..9u32, or_null(0..300u32), or_null(0..70u32), 1..4u8),
        flags in vec(any::<bool>(), 3),
        (test, host) in (name(), name()),
        (why, error) in (or_null(any::<String>()), or_null(name())),
        command in vec(any::<String>(), 0..3),
        metrics in vec((name(), value(), select(vec!["s", "B", "1"])), 0..5),
        more in vec(0..8u8, 0..4),
        tail in any::<String>(),
    ) -> Value {
        let metric = |(name, value, unit): (String, Value, &str)| {
            let metric = if value.is_null() { json!([value, unit, tail]) } else { json!([value, unit]) };
            (name, metric)
        };
        let metrics: serde_json::Map<String, Value> = metrics.into_iter().map(metric).collect();
        let mut line = json!({
            "test": test, "trial": numbers[0], "block": numbers[1], "order": numbers[2], "worker": numbers[3],
            "host": host, "sitting": numbers[4], "boot_id": "b", "command": command,
            "start": start_ns.map(|_| "2026-01-01T00:00:00.000000000Z"), "start_ns": start_ns, "inner": inner,
            "exit_status": exit_status, "signal": signal, "timed_out": flags[0], "cancelled": flags[1],
            "error": error, "kept": flags[2], "why": why, "metrics": metrics,
        });
        for kind in more {
            let (name, value) = match kind {
                0 => ("rows", json!(rows)),
                1 => ("stdout", json!({"bytes": 3, "sha256": "x", "tail": tail})),
                2 => ("stderr", Value::Null),
                3 => ("windows", json!([{"duration_s": 1.5, "latency": [tail]}])),
                4 => ("notes", json!([tail])),
                5 => ("cache", json!({"declared": "warm", "performed": null})),
                6 => ("windows", json!([])),
                _ => ("later", json!([1e300, -2, true, {"a": [false, null, {}]}, []])),
            };
            line[name] = value;
        }
        line
    }
}

/// A line: short, or with blanks in it.
fn line() -> impl Strategy<Value = Vec<u8>> {
    (measurement(), any::<bool>()).prop_map(|(line, blanks)| {
        let short = serde_json::to_vec(&line).unwrap();
        if !blanks {
            return short;
        }
        let long = serde_json::to_string_pretty(&line).unwrap();
        long.replace("\n", " \t\r").into_bytes()
    })
}

const BITS: [&str; 24] = [
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "\n",
    "0",
    "9",
    "-",
    ".",
    "e9",
    "1e999",
    "null",
    "true",
    "[",
    "]",
    "{}",
    ",",
    ":",
    "[1,\"s\"]",
    "\"trial\":1,",
    "99999999999999999999",
    "\u{7f}",
    "é",
    " ",
];

proptest! {
    #[test]
    fn valid_lines_mean_what_they_say(lines in vec(line(), 0..8), chunk in 1..5000u64) {
        check(&lines, chunk)?;
    }

    #[test]
    fn an_edited_line_is_read_as_it_stands_or_named(
        mut lines in vec(line(), 1..5),
        edits in vec((any::<Index>(), any::<Index>(), 0..3u8, select(BITS.to_vec())), 1..4),
        chunk in 1..5000u64,
    ) {
        for (which, at, how, bit) in edits {
            let number = which.index(lines.len());
            let line = &mut lines[number];
            let at = at.index(line.len() + 1);
            let until = if how == 0 { at } else { line.len().min(at + bit.len()) };
            let bit = if how == 1 { "" } else { bit };
            line.splice(at..until, bit.bytes());
        }
        check(&lines, chunk)?;
    }

    #[test]
    fn any_bytes_are_no_reason_to_panic(text in vec(any::<u8>(), 0..200), chunk in 1..300u64) {
        read(&text, Some(1), None, chunk);
    }

    #[test]
    fn a_file_that_was_cut_short_has_its_whole_lines(lines in vec(line(), 1..4), at in any::<Index>()) {
        let text: Vec<u8> = lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
        let text = &text[..at.index(text.len())];
        let whole = text.iter().filter(|&&byte| byte == b'\n').count();
        let found = read(text, None, None, 1 << 20);
        if found.wrong().is_none() {
            // Without workers, only `rows` may say that lines are missing.
            let out = found.index["files"][0]["left_out"].as_u64().unwrap() as usize;
            prop_assert_eq!(found.rows() + out, whole);
            prop_assert_eq!(found.index["files"][0]["torn"].as_bool(), Some(!text.ends_with(b"\n") && !text.is_empty()));
        }
    }
}
