//! Workloads as text.

use proptest::prelude::*;

use crate::knobs::KNOBS;
use crate::model_tests::tried;
use crate::{FileSet, Workload};

fn read(text: &str) -> Result<Workload, String> {
    Workload::read(text, "mine.toml")
}

#[test]
fn what_a_preset_shows_reads_as_the_preset_and_names_each_source() {
    for name in Workload::names() {
        let preset = Workload::preset(name).unwrap();
        let shown = preset.show();
        assert_eq!(read(&shown).as_ref(), Ok(&preset), "{shown}");
        assert_eq!(shown.matches("# unit: ").count(), KNOBS.len());
        assert_eq!(shown.matches("; source: ").count(), KNOBS.len());
        assert!(!shown.contains("source: \n") && !shown.contains("source: default"), "{shown}");
    }
}

#[test]
fn every_knob_can_be_set_to_what_it_shows() {
    for name in Workload::names() {
        let preset = Workload::preset(name).unwrap();
        let mut built = read("name = 'x'\nmix = { getattr = 1 }").unwrap();
        for knob in KNOBS {
            built.set(&format!("{} = {}", knob.name, (knob.toml)(&preset))).unwrap();
        }
        built.set(&format!("name={name}")).unwrap();
        assert_eq!(built, preset);
        assert_eq!(built.show().matches("source: set\n").count(), KNOBS.len());
    }
}

#[test]
fn a_file_begins_with_a_preset_and_changes_what_it_names() {
    let text = "files = 1_000\nmix.read = 0x10\npreset = \"web\"\npopularity = \"zipf:0.9\"\nlinks = 0.5\n";
    let workload = read(text).unwrap();
    let shown = workload.show();
    for line in [
        "name = \"web\"",
        "files = 1000",
        "mix = { read = 16 }",
        "popularity = \"zipf:0.9\"",
        "directory_files = 36",
        "links = 0.5",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    assert!(shown.contains("source: mine.toml:4\npopularity"), "{shown}");
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_the_file_and_the_line() {
    for (text, why) in [
        ("file = 3\n", "mine.toml:1: \"file\" is no knob; the nearest is files"),
        ("\n\npreset = \"wed\"", "mine.toml:3: \"wed\" is no preset; the nearest is web"),
        (
            "preset = \"web\"\nmix = { raed = 1 }",
            "mine.toml:2: mix: \"raed\" is no operation; the nearest is read",
        ),
        ("mix.read = -1", "mine.toml:1: mix: read: expected a weight of 0 to 1e9"),
        ("files = \"many\"", "mine.toml:1: files: \"many\" is not a number that fits here"),
        ("files = -1", "mine.toml:1: files: \"-1\" is not a number that fits here"),
        ("files = 99999999999999999999999", "mine.toml:1"),
        ("churn = 2", "mine.toml:1: churn: expected 0 to 1"),
        ("churn = nan", "mine.toml:1: churn: expected 0 to 1"),
        ("popularity = \"zip:2\"", "mine.toml:1: popularity: expected uniform, share:SHARE or zipf:ALPHA"),
        ("sizes = \"fixed:x\"", "mine.toml:1: sizes: \"x\" is not a number"),
        ("files = [1]", "mine.toml:1: files: expected a number, a text"),
        ("files = 1\nfiles = 2", "mine.toml:2: "),
        ("files = \n", "mine.toml:1: "),
        ("files", "mine.toml:1: "),
        ("mix = { read = { x = 1 } }", "mine.toml:1: mix: expected a table of numbers"),
        ("files = 3", "mine.toml: mix: no operation has a weight"),
        ("mix = { create = 1, read = 1 }", "mine.toml: mix: remove must weigh as much"),
    ] {
        let found = read(text).unwrap_err();
        assert!(found.starts_with(why) && !found.contains('\n'), "{text:?}: {found}");
    }
}

#[test]
fn knobs_that_contradict_each_other_are_named() {
    for (changes, knob) in [
        (&["mix.create=1"][..], "mix"),
        (&["mix.mkdir=1"], "mix"),
        (&["mix.create=1", "mix.remove=1"], "churn"),
        (&["mix.rename=1"], "churn"),
        (&["mix.mkdir=1", "mix.rmdir=1"], "spare"),
        (&["mix.readlink=1"], "links"),
        (&["write_sequential=0.6", "write_append=0.6"], "write_sequential"),
        (&["mix.create=1", "mix.remove=1", "churn=0.1"], "fill"),
        (&["log_every=5"], "log_files"),
        (&["log_every=0.5", "log_files=1"], "log_every"),
        (&["log_write=100", "log_bytes=99"], "log_write"),
        (&["sizes=fixed:100", "largest=99"], "largest"),
        (&["files=0"], "files"),
        (&["directory_spread=zipf:1"], "directory_spread"),
        (&["mix="], "mix"),
    ] {
        let mut workload = read("mix = { getattr = 1 }").unwrap();
        changes.iter().for_each(|change| workload.set(change).unwrap());
        let why = workload.check().unwrap_err();
        assert!(why.starts_with(knob) && !why.contains('\n'), "{changes:?}: {why}");
        assert!(FileSet::new(&workload, 1.0, 1).is_err());
    }
}

#[test]
fn an_assignment_that_is_none_is_refused_and_the_nearest_knob_is_named() {
    let mut workload = Workload::preset("web").unwrap();
    let before = workload.clone();
    for (assignment, why) in [
        ("fils=3", "\"fils\" is no knob; the nearest is files"),
        ("files", "\"files\": expected KNOB=VALUE"),
        ("files=x", "files: \"x\" is not a number"),
        ("mix.reed=1", "mix: \"reed\" is no operation; the nearest is read"),
        ("fill=maybe", "fill: expected true or false"),
        ("read_size=fixed:0", "read_size: "),
        ("read_size=fixed:99999999999", "read_size: expected requests of 1 byte to 64 MiB"),
    ] {
        let found = workload.set(assignment).unwrap_err();
        assert!(found.starts_with(why), "{found}");
    }
    assert_eq!(workload, before);
}

const DOCUMENT: &str = include_str!("../../../../docs/reference/workloads.md");

#[test]
fn the_documentation_names_each_knob_with_its_unit_and_each_preset() {
    for knob in KNOBS {
        assert!(DOCUMENT.contains(&format!("| `{}` | {} |", knob.name, knob.unit)), "{}", knob.name);
    }
    for name in Workload::names() {
        let preset = Workload::preset(name).unwrap();
        let part = DOCUMENT.split(&format!("### {name}\n")).nth(1).unwrap_or_default();
        let part =
            part.split("\n## ").next().and_then(|part| part.split("\n### ").next()).unwrap_or_default();
        for (knob, value) in crate::presets::shown(&preset) {
            let line = format!("\n{knob} = {value}\n");
            assert!(part.contains(&line), "{name}: the line{line}");
        }
    }
}

#[test]
fn the_example_of_the_documentation_is_a_workload() {
    let example = DOCUMENT.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let workload = Workload::read(example, "docs/reference/workloads.md").unwrap();
    assert_eq!(workload.name(), "builds");
    assert!(FileSet::new(&workload, 100.0, 1).is_ok());
}

proptest! {
    #[test]
    fn what_any_workload_shows_reads_as_it(choices in prop::collection::vec(0usize..12, 23), name in ".{0,12}") {
        let mut workload = tried(&choices);
        workload.set(&format!("name={name}")).unwrap();
        prop_assert_eq!(read(&workload.show()), Ok(workload));
    }

    #[test]
    fn any_text_is_a_workload_or_one_line_of_why_not(text in ".{0,200}") {
        if let Err(why) = read(&text) {
            prop_assert!(why.starts_with("mine.toml") && why.lines().count() == 1, "{}", why);
        }
    }

    #[test]
    fn any_value_of_any_knob_is_taken_or_refused_in_one_line(
        lines in prop::collection::vec((0..KNOBS.len(), "[ -~]{0,30}|[0-9.e+-]{1,12}|\"[a-z]{3,9}(:[0-9.]{1,6}){0,5}\""), 1..6),
    ) {
        let text: String = lines.iter().map(|(at, value)| format!("{} = {value}\n", KNOBS[*at].name)).collect();
        if let Err(why) = read(&text) {
            prop_assert!(why.starts_with("mine.toml:") && why.lines().count() == 1, "{}", why);
        }
        let mut workload = Workload::preset("web").unwrap();
        for (at, value) in &lines {
            let _ = workload.set(&format!("{}={value}", KNOBS[*at].name));
        }
        if workload.check().is_ok() {
            // No knob that was taken makes the population or the stream fail, but for its size.
            let _ = workload.set("files=3").and(workload.set("files_per_rate=0")).and(workload.set("bytes_per_rate=0"));
            let set = FileSet::new(&workload, 1.0, 1);
            prop_assert!(set.is_ok(), "{:?}", set.err());
            let mut stream = crate::Stream::new(&workload, &set.unwrap(), 1);
            (0..50).for_each(|_| drop(format!("{:?}", stream.next())));
        }
    }
}
