//! A run for people: one line that moves while it runs, and a summary at its end.

use std::io::{self, Write};
use std::sync::mpsc::Receiver;

use etude_clock::seconds;
use etude_replay::time_text as time;
use etude_terminal::Screen;

use crate::report::Line;
use crate::report::summary::{LeftOut, Summary};
use crate::report::tally::Tally;

/// Quantiles of the response times.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Writes the summary when the run is over; windows only move the line.
///
/// # Errors
/// Nobody reads.
pub(crate) fn write(
    lines: &Receiver<Line>,
    kinds: usize,
    planned_ns: u64,
    screen: Screen,
    mut out: impl Write,
) -> io::Result<()> {
    let live = LiveLine { screen: Screen::of(&io::stderr()) };
    let (mut whole, mut ran_s) = (Tally::new(kinds), 0.0);
    for line in lines {
        match line {
            Line::Window { duration_s, tally, .. } => {
                whole.add(&tally);
                ran_s += duration_s;
                live.draw(&progress(&tally, &whole, duration_s, ran_s, seconds(planned_ns)));
            }
            Line::Summary { mut summary, drained } => {
                let lateness_p99_s = summary.judge(&mut whole, drained.as_ref().map(|(_, tally)| &**tally));
                live.erase();
                out.write_all(report(&summary, &whole, lateness_p99_s, screen).as_bytes())?;
                out.flush()?;
            }
        }
    }
    Ok(())
}

/// A line of standard error that is drawn over, where that is a terminal.
struct LiveLine {
    screen: Screen,
}

impl LiveLine {
    fn draw(&self, text: &str) {
        if self.screen.obeys {
            let _ = write!(io::stderr(), "\r\x1b[K{}", self.screen.cut(text));
        }
    }

    fn erase(&self) {
        if self.screen.obeys {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// The last window, its quantile of all so far where it has too few responses; what matters most comes first, as a narrow terminal cuts the end off.
fn progress(window: &Tally, whole: &Tally, duration_s: f64, ran_s: f64, planned_s: f64) -> String {
    let per_s = |count: u64| rate(count, duration_s);
    let (offered, completed) = (per_s(window.offered), per_s(window.completed));
    let p99_s = window.quantile_s(0.99).or_else(|| whole.quantile_s(0.99));
    let (failed, p99) = (window.failed, p99_s.map_or_else(none, time));
    format!(
        "{ran_s:.0} of {planned_s:.0} s: p99 {p99}, errors {failed}, offered {offered}, completed {completed}"
    )
}

/// Columns of the names, and what parts them from their values.
const NAMES: usize = 12;

fn report(summary: &Summary, whole: &Tally, lateness_p99_s: Option<f64>, screen: Screen) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        text += &screen.wrapped(&format!("{name:<NAMES$}{value}\n"), NAMES);
    };
    if summary.generator_limited {
        let why = if summary.headroom() > 0.0 { "late (others had its CPU)" } else { "saturated" };
        line("Note:", &format!("the generator was {why}: the figures are its own"));
    }
    line("load", &load(summary));
    if let Some(place) = &summary.about.file_set {
        line("files", &format!("{place} stays, for the next run"));
    }
    if let Some(left) = summary.about.roll.and_then(|roll| roll.left_out) {
        let LeftOut { calls, files, bytes } = left;
        line("left out", &format!("{calls} calls of a pass, {files} files of {bytes} bytes (--only)"));
    }
    if let Some(roll) = summary.about.roll.filter(|roll| roll.shared_files > 0) {
        let (files, bytes) = (roll.shared_files, roll.shared_bytes);
        line("shared", &format!("{files} files of {bytes} bytes by all passes: only read"));
    }
    if summary.ended == "early" {
        line("ended", "early, by a signal");
    }
    let counted = |count| format!("{count} ({})", rate(count, summary.duration_s));
    line("offered", &counted(summary.offered));
    line("completed", &counted(summary.completed));
    line("errors", &errors(summary));
    if summary.abandoned > 0 {
        line("unanswered", &format!("{} after another {}", summary.abandoned, time(summary.drained_s)));
    }
    if let Some(roll) = summary.about.roll.filter(|roll| roll.not_played > 0) {
        line("not played", &format!("{} calls: what they use was not there", roll.not_played));
    }
    for (number, row) in responses(whole, screen.width).iter().enumerate() {
        line(if number == 0 { "response" } else { "" }, row);
    }
    line("lateness", &lateness_p99_s.map_or_else(none, |s| format!("p99 {}", time(s))));
    let (busy, headroom) = (100.0 * summary.busy, 100.0 * summary.headroom());
    line("generator", &format!("{busy:.1} % busy, headroom {headroom:.0} %"));
    text
}

/// `files, web: 500.0/s for 3.000 s (poisson arrivals)`.
fn load(summary: &Summary) -> String {
    let about = &summary.about;
    let of = about.workload.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    let asked = match (summary.asked_rate, summary.asked_clients) {
        (Some(rate), _) => per_second(rate),
        (_, clients) => format!("{} clients", clients.unwrap_or(0)),
    };
    let how = match (&about.roll, summary.arrivals) {
        (Some(roll), _) => format!("{:.3} times the recorded speed", roll.multiple),
        (None, "closed") => format!("closed loop, think time {}", time(summary.think_s.unwrap_or(0.0))),
        (None, arrivals) => format!("{arrivals} arrivals"),
    };
    format!("{}{of}: {asked} for {} ({how})", about.target, time(summary.duration_s))
}

/// `12 (0.8 %): timeout 10, 503 2`.
fn errors(summary: &Summary) -> String {
    let failures = &summary.failures;
    let mut by: Vec<(&str, u64)> = vec![
        ("connect", failures.connect),
        ("closed", failures.closed),
        ("malformed", failures.malformed),
        ("timeout", failures.timeout),
    ];
    by.extend(failures.errors.iter().map(|(name, count)| (*name, *count)));
    by.retain(|(_, count)| *count > 0);
    by.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let why: Vec<String> = by.iter().map(|(name, count)| format!("{name} {count}")).collect();
    match summary.failed {
        0 => "0".to_owned(),
        failed => {
            let percent = 100.0 * failed as f64 / (summary.completed + failed) as f64;
            format!("{failed} ({percent:.2} %): {}", why.join(", "))
        }
    }
}

/// Columns of a time in the table of response times, and those before it.
const TIME: usize = 9;
const GAP: usize = 2;

/// Headings, and the times below them; as many pairs of lines as it takes.
fn responses(whole: &Tally, width: Option<usize>) -> Vec<String> {
    let mut columns = vec![("mean", whole.all().mean_s())];
    columns.extend(QUANTILES.map(|(name, quantile)| (name, whole.quantile_s(quantile))));
    columns.push(("max", whole.slowest_s()));
    let columns: Vec<_> = columns.into_iter().map(|(name, s)| (name, s.map_or_else(none, time))).collect();
    let row = |cells: Vec<&str>| {
        cells.iter().map(|cell| format!("{cell:>TIME$}")).collect::<Vec<_>>().join(&" ".repeat(GAP))
    };
    let fit = width.map_or(columns.len(), |width| (width.saturating_sub(NAMES) + GAP) / (TIME + GAP));
    columns
        .chunks(fit.max(1))
        .flat_map(|part| {
            [
                row(part.iter().map(|(name, _)| *name).collect()),
                row(part.iter().map(|(_, value)| value.as_str()).collect()),
            ]
        })
        .collect()
}

fn rate(count: u64, duration_s: f64) -> String {
    if duration_s > 0.0 { per_second(count as f64 / duration_s) } else { none() }
}

/// Four digits.
fn per_second(rate: f64) -> String {
    let digits = (3 - rate.max(1.0).log10().floor() as i32).max(0) as usize;
    format!("{rate:.digits$}/s")
}

fn none() -> String {
    "–".to_owned()
}

#[cfg(test)]
#[path = "text_report_tests.rs"]
mod tests;
