use std::sync::mpsc::channel;

use super::*;
use crate::report::summary::{About, LeftOut, RollAbout, Summary};
use crate::run::distribution::Process;
use crate::run::plan::{Load, Plan, Wait};
use crate::run::target::Failure;

fn summary(load: Load) -> Summary {
    let plan = Plan {
        load,
        wait: Wait::Sleep,
        seed: 0,
        warm_up_ns: 0,
        duration_ns: 2_000_000_000,
        window_ns: 1_000_000_000,
        outstanding: 10,
        timeout_ns: 1,
        drain_ns: 1,
    };
    let (workload, file_set) = (Some("web".to_owned()), Some("./web-0".to_owned()));
    let about = About { target: "files", workload, file_set, roll: None };
    Summary { duration_s: 2.0, ..Summary::new(&plan, about) }
}

const PIPE: Screen = Screen { width: None, ascii: false, obeys: false };

/// Fields of the report by their names; the times of `response` by theirs.
fn reported(answered: u64, change: impl FnOnce(&mut Summary, &mut Tally)) -> Vec<(String, String)> {
    let text = written(answered, PIPE, change);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let field = |line: &str| {
        let name: String = line.chars().take(12).collect();
        (name.trim().to_owned(), line.chars().skip(12).collect::<String>().trim().to_owned())
    };
    text.lines().map(field).collect()
}

fn written(answered: u64, screen: Screen, change: impl FnOnce(&mut Summary, &mut Tally)) -> String {
    let mut tally = Tally::new(2);
    (1..=answered).for_each(|n| tally.answered((n % 2) as usize, n * 1_000_000));
    (tally.offered, tally.started) = (answered, answered);
    tally.late(20_000);
    let mut summary = summary(Load::Open { rate: 500.0, process: Process::Poisson });
    change(&mut summary, &mut tally);
    summary.add(&tally);
    let (sender, receiver) = channel();
    let own = crate::report::Own { cpu: 0.1, outstanding: 0, waiting: 0, waited_s: None, multiple: None };
    sender.send(Line::Window { duration_s: 2.0, tally: Box::new(tally), own }).unwrap();
    sender.send(Line::Summary { summary: Box::new(summary), drained: None }).unwrap();
    drop(sender);
    let mut out = Vec::new();
    write(&receiver, 2, 2_000_000_000, screen, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_narrow_terminal_has_the_same_words_in_lines_that_fit() {
    let wide = written(10_000, PIPE, |_, _| ());
    for width in [22, 40, 60, 76] {
        let text = written(10_000, Screen { width: Some(width), ..PIPE }, |_, _| ());
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        let words = |text: &str| {
            let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(words(&text), words(&wide));
        for heading in ["mean", "p50", "p99.9", "max"] {
            let (above, below) = text.split_once(heading).unwrap();
            let end = above.lines().last().unwrap().len() + heading.len();
            let times = below.lines().nth(1).unwrap();
            assert!(times[..end].ends_with(" s"), "the time of {heading} stands below it: {text}");
        }
    }
    assert_eq!(written(10_000, Screen { width: Some(77), ..PIPE }, |_, _| ()), wide);
}

fn of<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    &fields.iter().find(|(field, _)| field == name).unwrap_or_else(|| panic!("no {name}: {fields:?}")).1
}

#[test]
fn people_get_rates_quantiles_lateness_and_headroom() {
    let fields = reported(1000, |summary, _| summary.busy = 0.2);
    assert_eq!(of(&fields, "load"), "files, web: 500.0/s for 2.000 s (poisson arrivals)");
    assert_eq!((of(&fields, "offered"), of(&fields, "completed")), ("1000 (500.0/s)", "1000 (500.0/s)"));
    assert_eq!(of(&fields, "errors"), "0");
    let words = |name| of(&fields, name).split_whitespace().collect::<Vec<_>>();
    assert_eq!(words("response"), ["mean", "p50", "p90", "p99", "p99.9", "max"]);
    let times = words("");
    assert_eq!(times[..2], ["500.5", "ms"]);
    for (place, expected_ms) in [(1, 500.0), (2, 900.0), (3, 990.0), (4, 999.0)] {
        let ms: f64 = times[2 * place].parse().unwrap();
        assert!((ms / expected_ms - 1.0).abs() < 0.002, "{times:?}");
    }
    assert!(of(&fields, "lateness").starts_with("p99 20."));
    assert_eq!(of(&fields, "generator"), "20.0 % busy, headroom 75 %");
}

#[test]
fn a_quantile_of_too_few_answers_is_a_dash() {
    let times = of(&reported(99, |_, _| ()), "").to_owned();
    let cells: Vec<&str> = times.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells[3..5], ["–", "–"], "p99 of 99 answers, and p99.9");
    assert_ne!((cells[1], cells[2]), ("–", "–"));
    let none = reported(0, |_, _| ());
    assert!(of(&none, "").split_whitespace().all(|cell| cell == "–"));
}

#[test]
fn what_failed_has_its_reasons_and_the_first_line_warns_of_the_generator() {
    let fields = reported(96, |summary, tally| {
        (0..3).for_each(|_| tally.failed(None, &Failure::Timeout));
        tally.failed(Some(1), &Failure::Status("ENOSPC"));
        (summary.busy, summary.waited, summary.ended, summary.abandoned) = (0.9, true, "early", 5);
    });
    assert_eq!(fields[0].0, "Note:");
    assert!(fields[0].1.contains("saturated"));
    assert!(of(&fields, "ended").starts_with("early"));
    assert_eq!(of(&fields, "errors"), "4 (4.00 %): timeout 3, ENOSPC 1");
    assert!(of(&fields, "unanswered").starts_with("5 "));
    assert_eq!(of(&fields, "generator"), "90.0 % busy, headroom 0 %");
}

#[test]
fn a_generator_that_was_late_is_not_called_saturated() {
    let fields = reported(100, |summary, tally| {
        summary.busy = 0.01;
        (0..100).for_each(|_| tally.late(90_000_000));
    });
    assert!(fields[0].0 == "Note:" && fields[0].1.contains("late"), "{fields:?}");
    assert_eq!(of(&fields, "generator"), "1.0 % busy, headroom 99 %");
}

#[test]
fn the_moving_line_fits_and_has_the_last_window() {
    let mut tally = Tally::new(1);
    (0..12345).for_each(|_| tally.answered(0, 1_234_567));
    (tally.offered, tally.started) = (12346, 12346);
    tally.failed(None, &Failure::Timeout);
    let line = progress(&tally, &Tally::new(1), 1.0, 12.0, 60.0);
    assert!(line.starts_with("12 of 60 s: p99 1.2"), "{line}");
    assert!(line.ends_with(" ms, errors 1, offered 12346/s, completed 12345/s"), "{line}");
    assert!(line.chars().count() < 80, "{line}");
}

#[test]
fn the_moving_line_has_the_quantile_of_all_so_far_where_a_window_has_too_few() {
    let (mut window, mut whole) = (Tally::new(1), Tally::new(1));
    (0..50).for_each(|_| window.answered(0, 1_000_000));
    (0..500).for_each(|_| whole.answered(0, 3_000_000));
    assert!(progress(&window, &whole, 1.0, 12.0, 60.0).contains("p99 3.0"));
    assert!(progress(&window, &window, 1.0, 12.0, 60.0).contains("p99 –"));
}

#[test]
fn files_that_stay_are_named() {
    assert!(of(&reported(10, |_, _| ()), "files").starts_with("./web-0 "));
}

#[test]
fn a_closed_loop_names_its_clients() {
    let closed = Load::Closed { clients: 4, think_ns: 10_000_000, exponential: true };
    assert_eq!(
        load(&summary(closed)),
        "files, web: 4 clients for 2.000 s (closed loop, think time 10.00 ms)"
    );
}

#[test]
fn what_passes_of_a_roll_share_and_leave_out_is_said() {
    let of = |shared_files, left_out| RollAbout {
        natural_rate: 100.0,
        multiple: 2.0,
        run_s: 1.0,
        calls: 100,
        passes: 40,
        places: 40,
        prepared_s: 0.1,
        own_bytes: 1_000_000,
        shared_files,
        shared_bytes: 85_000_000_000,
        left_out,
        not_played: 0,
    };
    let names = |roll: RollAbout| -> Vec<String> {
        let fields = reported(1000, |summary, _| summary.about.roll = Some(roll));
        fields
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| name == "shared" || name == "left out")
            .collect()
    };
    assert_eq!(names(of(0, None)), [""; 0]);
    assert_eq!(names(of(1234, None)), ["shared"]);
    let left_out = LeftOut { calls: 123_456, files: 9876, bytes: 85_000_000_000 };
    assert_eq!(names(of(1234, Some(left_out))), ["left out", "shared"]);
}
