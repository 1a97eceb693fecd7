//! What is done with altered inputs, and what has to hold of it.

use std::path::Path;

use clap::ValueEnum;
use etude_calls::Call;
use etude_replay::{Reading, Roll, compile, only_below, untouched};
use etude_script::ops::{Class, Glob, Rounds, Sizes};
use etude_script::{
    Action, Kept, Needed, Options, Script, What, check, from_trace, import, iolog, ops, parse,
};
use etude_trace::{Frame, Reader, columns, print};

use crate::altered;
use crate::drawn;
use crate::mutate;
use crate::play::{Played, play};
use crate::random::Random;
use crate::seeds::{FOREIGN, Seeds, text};

/// One thing that reads what somebody else has made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A trace: read, printed, as columns.
    Trace,
    /// A script of a trace.
    FromTrace,
    /// A script's text.
    Text,
    /// A roll of a script.
    Compiled,
    /// A roll, read, and now and then played.
    Roll,
    /// A script of a script.
    Changed,
    /// A script of what another program recorded.
    Imported,
}

pub const TARGETS: [(Target, &str); 7] = [
    (Target::Trace, "traces"),
    (Target::FromTrace, "scripts of traces"),
    (Target::Text, "scripts"),
    (Target::Compiled, "compiled scripts"),
    (Target::Roll, "rolls"),
    (Target::Changed, "changed scripts"),
    (Target::Imported, "imported texts"),
];

/// What became of a case.
pub enum Came {
    /// It was refused, with one line.
    Refused,
    /// It was what it was to be.
    Taken,
    /// It was played as well.
    Played(Played),
}

/// Where a case may write.
pub struct Place<'a> {
    pub directory: &'a Path,
    /// One roll of so many is played.
    pub play: usize,
}

/// Makes the input of a case and does what is to be done with it. Panics where something does not hold.
pub fn run(target: Target, random: &mut Random, seeds: &Seeds, place: &Place) -> Came {
    match target {
        Target::Trace => trace(random, seeds, place),
        Target::FromTrace => of_trace(random, seeds, place),
        Target::Text => of_text(random, seeds),
        Target::Compiled => compiled(random, seeds),
        Target::Roll => roll(random, seeds, place),
        Target::Changed => changed(random, seeds),
        Target::Imported => imported(random),
    }
}

/// What somebody is told is one line, and not without end.
fn refused(line: &dyn std::fmt::Display) -> Came {
    let line = line.to_string();
    assert!(!line.is_empty() && line.len() < 10_000 && !line.contains(char::is_control), "{line:?}");
    Came::Refused
}

fn altered_trace(random: &mut Random, seeds: &Seeds, place: &Place) -> std::path::PathBuf {
    let path = place.directory.join("trace");
    let mut one = random.of(&seeds.traces).clone();
    if random.one_in(2) {
        let mut noted = random.of(&seeds.noted).clone();
        let other = random.of(&seeds.noted);
        altered::events(random, &mut noted, other);
        noted.write(&path).expect("room for a trace");
        if !random.one_in(4) {
            return path;
        }
        one = std::fs::read(&path).expect("it was written");
    }
    let other = random.of(&seeds.traces);
    std::fs::write(&path, mutate::file(random, &one, other)).expect("room for a trace");
    path
}

fn trace(random: &mut Random, seeds: &Seeds, place: &Place) -> Came {
    let path = altered_trace(random, seeds, place);
    if random.one_in(4) {
        let out = std::fs::File::create(place.directory.join("columns")).expect("a file to write");
        return columns(&path, out, random.one_in(2)).map_or_else(|error| refused(&error), |()| Came::Taken);
    }
    let printed = print(&path, &mut std::io::sink());
    let mut reader = match Reader::open(&path) {
        Ok(reader) => reader,
        Err(error) => return refused(&error),
    };
    let mut events = 0;
    loop {
        match reader.next() {
            Ok(Some(Frame::Events { events: more, .. })) => events += more.len(),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                assert!(printed.is_err(), "{events} events, then {error}");
                return refused(&error);
            }
        }
    }
    assert!(reader.ending().is_some() && printed.is_ok());
    Came::Taken
}

fn of_trace(random: &mut Random, seeds: &Seeds, place: &Place) -> Came {
    let path = altered_trace(random, seeds, place);
    let options = Options {
        keep_names: random.one_in(2),
        hash_names: random.one_in(4).then_some([7; 16]),
        maps: if random.one_in(4) { vec![(b"/w".to_vec(), b"in/here".to_vec())] } else { Vec::new() },
        waits: random.one_in(2),
        pipes: *random.of(&[Kept::None, Kept::Whole, Kept::All]),
        without_run_delay: random.one_in(2),
    };
    match from_trace(&path, &options) {
        Ok((script, _)) => {
            sound(&script);
            Came::Taken
        }
        Err(error) => refused(&error),
    }
}

/// It is one, and its text is read as it was written.
fn sound(script: &Script) {
    if let Err((at, what)) = check(script) {
        panic!("step {at}, {:?}: {what}", script.steps[at]);
    }
    let text = text(script);
    match parse("it", &text) {
        Ok(parsed) if parsed.script == *script => {}
        Ok(parsed) => panic!("{}\nwas read as\n{}", lossy(&text), lossy(&self::text(&parsed.script))),
        Err(wrong) => panic!("{wrong}"),
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// A script whose text was altered.
fn altered_script(random: &mut Random, seeds: &Seeds) -> Result<Script, Came> {
    let (one, other) = (random.of(&seeds.texts), random.of(&seeds.texts));
    let mut altered = one.clone();
    mutate::text(random, &mut altered, other);
    parse("it", &altered).map(|parsed| parsed.script).map_err(|wrong| {
        let shown = wrong.to_string();
        assert_eq!(shown.lines().count(), 3, "{shown}");
        refused(&wrong.what)
    })
}

fn of_text(random: &mut Random, seeds: &Seeds) -> Came {
    match altered_script(random, seeds) {
        Ok(script) => {
            sound(&script);
            Came::Taken
        }
        Err(came) => came,
    }
}

/// One of which some was drawn, or altered.
fn any_script(random: &mut Random, seeds: &Seeds) -> Result<Script, Came> {
    if random.one_in(2) { Ok(drawn::script(random)) } else { altered_script(random, seeds) }
}

fn compiled(random: &mut Random, seeds: &Seeds) -> Came {
    let script = match any_script(random, seeds) {
        Ok(script) => script,
        Err(came) => return came,
    };
    if check(&script).is_err() {
        return Came::Refused;
    }
    let (bytes, made) = match compile(&script, Vec::new()) {
        Ok(made) => made,
        Err(error) => return refused(&error),
    };
    let calls = script.steps.iter().filter(|step| matches!(step.action, Action::Call(_))).count() as u64;
    let roll = Roll::read(bytes).unwrap_or_else(|what| panic!("{what}:\n{}", lossy(&text(&script))));
    assert_eq!((decoded(&roll), made.calls), (Ok(calls), calls));
    // They stand in the order of their names, which is that of their first use.
    let by_path = |mut needed: Vec<Needed>| {
        needed.sort_by(|a, b| a.path.cmp(&b.path));
        needed
    };
    assert_eq!(by_path(roll.needed), by_path(script.needed.into_iter().map(possible).collect()));
    Came::Taken
}

/// No file has all bytes that a number can count on disk.
fn possible(mut needed: Needed) -> Needed {
    if let What::File { allocated: Some(allocated), .. } = &mut needed.what {
        *allocated = (*allocated).min(u64::MAX - 1);
    }
    needed
}

/// How many calls a roll has.
fn decoded(roll: &Roll) -> Result<u64, String> {
    let (mut events, mut all) = (Vec::new(), 0);
    for thread in 0..roll.marks.len() {
        let mut reading = Reading::new(thread);
        while reading.more(roll) {
            reading.read(roll, &mut events)?;
            all += events.len() as u64;
        }
    }
    Ok(all)
}

fn roll(random: &mut Random, seeds: &Seeds, place: &Place) -> Came {
    let mut bytes = random.of(&seeds.rolls).clone();
    if random.one_in(2)
        && let Ok(script) = any_script(random, seeds)
        && let Ok(made) = compile(&script, Vec::new())
    {
        bytes = made.0;
    }
    if !random.one_in(4) {
        let other = random.of(&seeds.rolls);
        bytes = mutate::file(random, &bytes, other);
    }
    let played = random.one_in(place.play);
    let roll = match Roll::read(bytes.clone()) {
        Ok(roll) => roll,
        Err(line) => return refused(&line),
    };
    let whole = decoded(&roll);
    if let Ok(files) = untouched(&roll) {
        assert!(files.len() <= roll.needed.len());
    }
    match only_below(&roll, &[b".".to_vec()]) {
        Ok(part) => assert!(part.head.threads.len() <= roll.head.threads.len()),
        Err((line, _)) => drop(refused(&line)),
    }
    if played {
        return Came::Played(play(&bytes, place.directory));
    }
    match whole {
        Ok(calls) => {
            assert_eq!(calls, roll.head.calls);
            Came::Taken
        }
        Err(line) => refused(&line),
    }
}

fn changed(random: &mut Random, seeds: &Seeds) -> Came {
    let script = match any_script(random, seeds) {
        Ok(script) if check(&script).is_ok() => script,
        Ok(_) => return Came::Refused,
        Err(came) => return came,
    };
    let many = random.below(5) as u32;
    let made = match random.below(9) {
        0 => ops::cut(&script, random.number(), random.number()),
        1 => {
            let end = random.below(10_000_000) as u64;
            ops::cut(&script, random.below(1_000_000) as u64, end)
        }
        2 => {
            let all: Vec<Call> = Call::all().collect();
            ops::filter(&script, &[*random.of(&all), Call::named("write").expect("a call")], &[])
        }
        3 => ops::filter(&script, &[], &[*random.of(Class::value_variants())]),
        4 => {
            let pattern = random.of(&["**", "d/*", "?n", "[!a-c]*", "a/**/b"]);
            ops::only_files(&script, &[Glob::new(pattern.as_bytes()).expect("a pattern")])
        }
        5 => ops::repeat(&script, many, if random.one_in(2) { Rounds::Same } else { Rounds::Own }),
        6 => ops::clone(&script, many),
        7 => match any_script(random, seeds) {
            Ok(other) if check(&other).is_ok() => ops::merge(&[script, other], random.one_in(2)),
            _ => return Came::Refused,
        },
        _ => scaled(random, &script),
    };
    match made {
        Ok(made) => {
            sound(&made);
            Came::Taken
        }
        Err(why) => refused(&why.0),
    }
}

fn imported(random: &mut Random) -> Came {
    let (one, other) = (*random.of(&FOREIGN), *random.of(&FOREIGN));
    let mut text = one.as_bytes().to_vec();
    mutate::text(random, &mut text, other.as_bytes());
    match import(&text) {
        Ok(found) => {
            sound(&found.script);
            let mut log = Vec::new();
            iolog(&found.script, &mut log).expect("memory");
            import(&log).unwrap_or_else(|what| panic!("{what}:\n{}", lossy(&log)));
            Came::Taken
        }
        Err(what) => refused(&what),
    }
}

fn scaled(random: &mut Random, script: &Script) -> Result<Script, ops::Refused> {
    let factor = *random.of(&[0.0, 0.5, 1.0, 4.0, 1e9, 1e300, 1e-300, -1.0, f64::NAN, f64::INFINITY]);
    match random.one_in(2) {
        true => ops::scale_gaps(script, factor),
        false => ops::scale_sizes(script, Sizes { factor, align: *random.of(&[1, 512, 4096, u64::MAX, 0]) }),
    }
}
