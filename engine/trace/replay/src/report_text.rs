//! A report as text.

use std::fmt::{self, Write};

use etude_calls::Call;
use etude_quantity::counted;
use etude_script::UNCOUNTED;
use etude_trace::{Policy, Scheduling, words};

use crate::report::Report;
use crate::unplayed::{Kind, Unplayed};

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
        ("requests", original.requests_s, report.requests_s, report.ratios.requests),
        ("all calls", original.calls_s, report.calls_s, report.ratios.calls),
    ];
    for (what, then, now, ratio) in rows {
        if what == "requests" && then == 0.0 && now == 0.0 {
            continue; // few programs have any
        }
        let ratio = ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
        let then = match then {
            0.0 if !original.timed => "not known".into(),
            least if !original.timed => format!("≥ {}", time(least)),
            known => time(known),
        };
        writeln!(out, "{what:<12}{then:>12}{:>12}{ratio:>9}", time(now))?;
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
    if report.waits > 0 {
        let (waits, waited) = (counted(report.waits, "wait"), time(report.waited_s));
        writeln!(out, "Order: {waits} for other threads, {waited} together.")?;
    }
    if report.late_chunks > 0 {
        let parts = counted(report.late_chunks, "time");
        writeln!(out, "Decoding: {parts} a part of the roll was decoded only when it was needed.")?;
    }
    if report.undirect > 0 {
        let calls = counted(report.undirect, "call");
        writeln!(out, "Without O_DIRECT, which refused them: {calls}.")?;
    }
    if report.by_threads {
        writeln!(out, "Note: io_uring or aio is not to be had here; its requests were made by threads.")?;
    }
    if let Some(warm) = report.cached {
        let cold = if warm == "replay" { "original" } else { "replay" };
        writeln!(
            out,
            "Note: the {warm} may have read from memory, the {cold} from disk: cool or warm before both."
        )?;
    }
    if report.scheduling_refused
        && let Some(class) = report.scheduling
    {
        writeln!(
            out,
            "Note: this user may not run in the recording's scheduling class ({}); not all threads did.",
            named(class)
        )?;
    }
    if report.changed_before {
        writeln!(out, "Note: an earlier replay has changed the files of this directory: prepare it anew.")?;
    }
    mismatches(out, report)?;
    unplayed(out, &report.unplayed)?;
    match unfaithful {
        None => writeln!(out, "Faithful: the same calls, the same results{}.", other_time(report.ratios.run)),
        Some(why) => writeln!(out, "Not faithful: {why}."),
    }
}

/// `, in 0.35 × the original's time`, where that is another time.
fn other_time(ratio: Option<f64>) -> String {
    match ratio {
        Some(ratio) if (ratio - 1.0).abs() > SAME_TIME => format!(", in {ratio:.3} × the original's time"),
        _ => String::new(),
    }
}

fn described(report: &Report) -> String {
    let speed = if report.speed == 1.0 { String::new() } else { format!(", {} times as fast", report.speed) };
    let priority = match report.scheduling.filter(|_| !report.scheduling_refused) {
        Some(class) => format!(", {}", named(class)),
        None if report.realtime => ", with real-time priority".into(),
        None => String::new(),
    };
    format!("timing {}{speed}{priority}", report.timing)
}

/// A class as chrt and nice name it.
fn named(Scheduling { policy, priority, nice }: Scheduling) -> String {
    let name = format!("SCHED_{}", policy.name().to_uppercase());
    match policy {
        Policy::Fifo | Policy::Rr => format!("{name}, priority {priority}"),
        Policy::Other | Policy::Batch => format!("{name}, nice {nice}"),
        Policy::Idle | Policy::Deadline => name,
    }
}

/// Run times that differ by no more than this share are the same, as far as one run of each can tell.
const SAME_TIME: f64 = 0.1;

/// Calls with another result that are shown.
const MOST_OTHERS: usize = 10;

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
    for other in report.other_results.iter().take(MOST_OTHERS) {
        let mut got = String::new();
        words::result(&mut got, Call::named(other.call).expect("it was played"), other.got);
        writeln!(out, "  thread {}, call {}: {}: here {got}", other.thread, other.step, other.line)?;
    }
    match report.mismatches.saturating_sub(MOST_OTHERS as u64) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more: --json has all"),
    }
}

/// Kinds of calls that are named.
const MOST_KINDS: usize = 4;

fn unplayed(out: &mut String, unplayed: &Unplayed) -> fmt::Result {
    let kinds = unplayed.transfers();
    if kinds.is_empty() && unplayed.bytes == 0 {
        return Ok(());
    }
    let of_time = match unplayed.time_share {
        Some(share) => format!("and {:.2} % of its time in reads and writes", 100.0 * share),
        None => "how much of its time in reads and writes is not known".into(),
    };
    let of_bytes = 100.0 * unplayed.bytes_share;
    writeln!(out, "{of_bytes:.2} % of the program's bytes are not played, {of_time}.")?;
    for kind in kinds.iter().take(MOST_KINDS) {
        writeln!(out, "  {}", described_kind(kind))?;
    }
    match kinds.len().saturating_sub(MOST_KINDS) {
        0 => Ok(()),
        more => writeln!(out, "  and {}: --json has all", counted(more as u64, "kind")),
    }
}

fn described_kind(kind: &Kind) -> String {
    let mut text = format!("{} ({}): {}", kind.call, kind.why, counted(kind.calls, "call"));
    if kind.bytes > 0 {
        text += &format!(", {}", counted(kind.bytes, "byte"));
    }
    match kind.requests {
        0 => {}
        UNCOUNTED.. => text += ", nobody knows how many requests",
        many => text += &format!(", {} of unknown size", counted(many, "request")),
    }
    text + &format!(", {}", time(kind.time_s))
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

#[cfg(test)]
mod tests {
    use super::other_time;

    #[test]
    fn another_run_time_is_said_and_one_that_is_not_known_is_not() {
        assert_eq!([None, Some(1.0), Some(0.91), Some(1.09)].map(other_time), [const { String::new() }; 4]);
        assert!(other_time(Some(0.35)).contains("0.350"));
        assert!(other_time(Some(1.2)).contains("1.200"));
    }
}
