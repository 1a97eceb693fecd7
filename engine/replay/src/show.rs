//! A report as text.

use std::fmt::{self, Write};

use etude_quantity::counted;

use crate::report::Report;

/// Its lines.
pub fn shown(report: &Report, unfaithful: Option<&str>) -> String {
    let mut out = String::new();
    write(&mut out, report, unfaithful).expect("a string grows");
    out
}

fn write(out: &mut String, report: &Report, unfaithful: Option<&str>) -> fmt::Result {
    let original = &report.original;
    writeln!(out, "{:<12}{:>12}{:>12}{:>9}", "", "original", "replay", "ratio")?;
    let rows = [
        ("run time", original.run_s, report.run_s, report.ratios.run),
        ("reading", original.read_s, report.read_s, report.ratios.read),
        ("writing", original.write_s, report.write_s, report.ratios.write),
        ("all calls", original.calls_s, report.calls_s, report.ratios.calls),
    ];
    for (what, then, now, ratio) in rows {
        let ratio = ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
        writeln!(out, "{what:<12}{:>12}{:>12}{ratio:>9}", time(then), time(now))?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "{} of {} ({}); {} with another result, {} not played.",
        counted(report.calls, "call"),
        counted(report.threads as u64, "thread"),
        described(report),
        report.mismatches,
        report.skipped
    )?;
    if let Some(late) = &report.lateness_s {
        let [median, p99, max] = [late.median, late.p99, late.max].map(time);
        writeln!(out, "Late: median {median}, 99 % below {p99}, at most {max}.")?;
    }
    if report.late_chunks > 0 {
        let parts = counted(report.late_chunks, "time");
        writeln!(out, "Decoding: {parts} a part of the roll was decoded only when it was needed.")?;
    }
    if report.undirect > 0 {
        let calls = counted(report.undirect, "call");
        writeln!(out, "Without O_DIRECT, which refused them: {calls}.")?;
    }
    if let Some(warm) = report.cached {
        let cold = if warm == "replay" { "original" } else { "replay" };
        writeln!(
            out,
            "Note: the {warm} may have read from memory, the {cold} from disk: cool or warm before both."
        )?;
    }
    mismatches(out, report)?;
    match unfaithful {
        None => writeln!(out, "Faithful."),
        Some(why) => writeln!(out, "Not faithful: {why}."),
    }
}

fn described(report: &Report) -> String {
    let speed = if report.speed == 1.0 { String::new() } else { format!(", {} times as fast", report.speed) };
    let priority = if report.realtime { ", with real-time priority" } else { "" };
    format!("timing {}{speed}{priority}", report.timing)
}

fn mismatches(out: &mut String, report: &Report) -> fmt::Result {
    let found: Vec<String> = report
        .by_call
        .iter()
        .filter(|(_, of)| of.mismatches > 0)
        .map(|(name, of)| format!("{name} {} of {}", of.mismatches, of.count))
        .collect();
    if !found.is_empty() {
        writeln!(out, "Another result: {}.", found.join(", "))?;
    }
    Ok(())
}

/// Seconds with a unit and four digits.
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 || s == 0.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    let digits = if value >= 100.0 {
        1
    } else if value >= 10.0 {
        2
    } else {
        3
    };
    format!("{value:.digits$} {unit}")
}
