use std::collections::BTreeMap;
use std::sync::Arc;

use clap::ValueEnum;
use etude_calls::Call;
use etude_trace::{Policy, Scheduling};
use proptest::prelude::*;

use super::builder::{HERE, call, close, remove};
use super::*;
use crate::model::{Action, Needed, Step, What};
use crate::times::times;
use crate::world::{NodeKind, World};
use crate::{check, parse, write};

mod apart;
mod examples;
mod pipes;
mod positions;
mod requests;

const PATHS: [&[u8]; 6] = [b"a", b"b", b"d/c", b"d/e/f", b"new", b"d/new"];

/// A script that is shown as its text where a test fails.
#[derive(Clone)]
struct Drawn(Script);

impl std::fmt::Debug for Drawn {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "\n{}", shown(&self.0))
    }
}

impl std::ops::Deref for Drawn {
    type Target = Script;

    fn deref(&self) -> &Script {
        &self.0
    }
}

/// Scripts of a few threads and processes in which each call is possible: drawn commands that are not are left out.
fn scripts() -> impl Strategy<Value = Drawn> {
    prop_oneof![drawn(true), drawn(false)]
}

/// Whether steps stand in the order in which they began, or in any.
fn drawn(orderly: bool) -> impl Strategy<Value = Drawn> {
    let command = (0_usize..8, 0_u8..20, 0_usize..6, 0_u64..5000);
    proptest::collection::vec(command, 0..60).prop_map(move |commands| {
        let file = |path: &[u8], bytes| Needed {
            path: path.into(),
            what: What::File { bytes, allocated: None, seen: true },
        };
        let needed = vec![file(b"a", 4096), file(b"b", 0), file(b"d/c", 100_000), file(b"d/e/f", 7)];
        let script = Script { notes: vec!["made up".into()], needed, ..Script::default() };
        let world = World::new(&script);
        let clocks = BTreeMap::from([(0, 0)]);
        let mut making =
            Making { world, script, threads: vec![(0, 0)], clocks, waitable: Vec::new(), orderly };
        commands.into_iter().for_each(|drawn| making.command(drawn));
        Drawn(making.script)
    })
}

struct Making {
    script: Script,
    world: World,
    /// Threads with their processes.
    threads: Vec<(u32, u32)>,
    /// Processes that were forked and not waited for, with those that forked them.
    waitable: Vec<(u32, u32)>,
    /// When each thread ends so far.
    clocks: BTreeMap<u32, u64>,
    orderly: bool,
}

impl Making {
    fn push(&mut self, thread: u32, mut action: Action, ns: u64) {
        if let Action::Call(called) = &mut action {
            called.duration_ns = (!ns.is_multiple_of(7)).then_some(ns * 10);
        }
        let now = self.clocks[&thread];
        let later = match &action {
            Action::Call(called) => now + called.duration_ns.unwrap_or(0),
            Action::Compute(ns) => now + ns,
            Action::Start(new) | Action::Fork(new) => *self.clocks.entry(*new).or_insert(now),
            Action::Wait(child) => {
                let of = |(thread, _): &&(u32, u32)| self.world.threads[thread] == *child;
                self.threads
                    .iter()
                    .filter(of)
                    .map(|(thread, _)| self.clocks[thread])
                    .max()
                    .unwrap_or(0)
                    .max(now)
            }
            Action::Exec => now,
        };
        self.clocks.insert(thread, later);
        let step = Step { thread, action };
        self.world.step(&step);
        self.script.steps.push(step);
    }

    fn command(&mut self, (who, what, which, number): (usize, u8, usize, u64)) {
        let next = self.threads.iter().min_by_key(|(thread, _)| self.clocks[thread]);
        let (thread, process) = match next {
            Some(next) if self.orderly => *next,
            _ => self.threads[who % self.threads.len()],
        };
        let free = |world: &World| {
            (3..)
                .find(|number| world.processes[&process].slot(*number).is_none())
                .expect("numbers do not end")
        };
        let open: Vec<i32> = self.world.processes[&process].table.numbers().collect();
        let some = (!open.is_empty()).then(|| open[which % open.len()]);
        let path = PATHS[which];
        let there = self.world.names.find(path).is_some();
        match (what, some) {
            (0..=2, _) => {
                let flags = [0, 0o102, 0o1102, 0o2102, 0o2000002, 2][number as usize % 6];
                if there || flags & 0o100 != 0 {
                    let descriptor = free(&self.world);
                    let values = [HERE, 0, flags, if flags & 0o100 != 0 { 0o644 } else { 0 }];
                    self.push(thread, call("openat", &values, &[path], i64::from(descriptor)), number);
                }
            }
            (3, Some(descriptor)) => self.push(thread, close(descriptor), number),
            (4, Some(descriptor)) => {
                self.push(thread, call("write", &[descriptor as u64, 0, number], &[], number as i64), number)
            }
            (5..=7, Some(descriptor)) => {
                let description = self.world.description(process, descriptor).unwrap() as usize;
                let opened = &self.world.opened[description];
                let Some(node) = opened.node else { return };
                let NodeKind::File { bytes, .. } = self.world.names.node(node).kind else { return };
                let (at, name, values) = match what {
                    5 => (number * 20, "pread64", [descriptor as u64, 0, number, number * 20]),
                    _ => (opened.position, "read", [descriptor as u64, 0, number, 0]),
                };
                let result = bytes.saturating_sub(at).min(number);
                let used = if what == 5 { 4 } else { 3 };
                self.push(thread, call(name, &values[..used], &[], result as i64), number);
            }
            (8, Some(descriptor)) => {
                self.push(thread, call("lseek", &[descriptor as u64, number, 0], &[], number as i64), number)
            }
            (9, Some(descriptor)) => {
                let copy = free(&self.world);
                self.push(thread, call("dup", &[descriptor as u64], &[], i64::from(copy)), number);
            }
            (10, _) if there => self.push(thread, remove(path, false), number),
            (11, _) if there => {
                let to = PATHS[number as usize % PATHS.len()];
                self.push(thread, call("rename", &[], &[path, to], 0), number);
            }
            (12, _) if !there => self.push(thread, call("newfstatat", &[HERE, 0, 0, 0], &[path], -2), number),
            (12, _) => self.push(thread, call("newfstatat", &[HERE, 0, 0, 0], &[path], 0), number),
            (13, _) if self.threads.len() < 6 => {
                let new = self.clocks.len() as u32;
                let fork = number % 2 == 0;
                self.push(thread, if fork { Action::Fork(new) } else { Action::Start(new) }, number);
                self.threads.push((new, if fork { new } else { process }));
                self.waitable.extend(fork.then_some((process, new)));
            }
            (14, _) => {
                if let Some(at) = self.waitable.iter().position(|(parent, _)| *parent == process) {
                    let (_, child) = self.waitable.remove(at);
                    self.push(thread, Action::Wait(child), number);
                    // What it starts would come after its end.
                    self.threads.retain(|(_, process)| *process != child);
                }
            }
            (15, Some(descriptor)) => {
                self.push(thread, call("ftruncate", &[descriptor as u64, number], &[], 0), number)
            }
            (16, _) if number % 5 == 0 => self.push(thread, Action::Exec, number),
            (17, _) => {
                let pair = [free(&self.world), 900 + who as i32];
                if self.world.processes[&process].slot(pair[1]).is_none() {
                    let mut action = call("pipe2", &[0, 0], &[], 0);
                    if let Action::Call(called) = &mut action {
                        let bytes: Arc<[u8]> = pair.map(i32::to_le_bytes).concat().into();
                        called.texts.push(etude_trace::Text { argument: 0, bytes });
                    }
                    self.push(thread, action, number);
                }
            }
            _ => self.push(thread, Action::Compute(number * 100), number),
        }
    }
}

/// Whether a script is one, and each call finds its descriptors and files; and what stands at its end.
fn sound(script: &Script) -> Result<World, TestCaseError> {
    prop_assert_eq!(check(script), Ok(()));
    let mut text = Vec::new();
    write(script, &mut text).unwrap();
    prop_assert_eq!(&parse("s", &text).unwrap().script, script);
    let mut world = World::new(script);
    for step in &script.steps {
        if let Action::Call(called) = &step.action {
            let process = world.threads[&step.thread];
            let creates = called.call.name() == "openat" && called.arguments[2] & 0o100 != 0;
            let paths = world.paths(process, &called.done());
            if let Some((_, path)) = paths.first().filter(|_| !creates && !called.failed()) {
                prop_assert!(
                    world.names.find(path).is_some(),
                    "{} is not there: {:?}",
                    path.escape_ascii(),
                    called
                );
            }
        }
        let effect = world.step(step);
        prop_assert_eq!(effect.closed, None, "not open: {:?}", step);
    }
    Ok(world)
}

/// What each process has open at the end: name and position of each descriptor that has a file.
fn open_files(world: &World, process: u32) -> BTreeMap<i32, (Option<Vec<u8>>, u64)> {
    let Some(process) = world.processes.get(&process) else { return BTreeMap::new() };
    let files = process.table.numbers().filter_map(|descriptor| {
        let opened = &world.opened[process.slot(descriptor)?.behind as usize];
        let name = world.names.name(opened.node?).map(<[u8]>::to_vec);
        Some((descriptor, (name, opened.position)))
    });
    files.collect()
}

/// Names of files with their sizes.
fn names(world: &World) -> Vec<(Vec<u8>, u64)> {
    let size = |(path, node): (&[u8], _)| match world.names.node(node).kind {
        NodeKind::File { bytes, .. } => Some((path.to_vec(), bytes)),
        _ => None,
    };
    world.names.all().filter_map(size).collect()
}

/// What each thread takes, but for waiting.
fn spent(script: &Script) -> BTreeMap<u32, u64> {
    let mut spent = BTreeMap::new();
    for step in &script.steps {
        *spent.entry(step.thread).or_default() += match &step.action {
            Action::Compute(ns) => *ns,
            Action::Call(called) => called.duration_ns.unwrap_or(0),
            _ => 0,
        };
    }
    spent.retain(|_, ns| *ns > 0);
    spent
}

fn calls(script: &Script) -> Vec<(u32, &Action)> {
    let calls = script.steps.iter().filter(|step| !matches!(step.action, Action::Compute(_)));
    calls.map(|step| (step.thread, &step.action)).collect()
}

fn length(script: &Script) -> u64 {
    times(script).iter().map(|span| span.end_ns).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn a_cut_of_all_is_the_whole(script in scripts()) {
        sound(&script)?;
        let whole = cut(&script, 0, u64::MAX).unwrap();
        prop_assert_eq!(calls(&whole), calls(&script));
        prop_assert_eq!(spent(&whole), spent(&script));
    }

    #[test]
    fn what_is_cut_off_before_leaves_files_and_descriptors_as_they_would_be(
        script in scripts(), part in 0.0..1.0_f64
    ) {
        let from = (length(&script) as f64 * part) as u64 + 1;
        let rest = cut(&script, from, u64::MAX).unwrap();
        let (all, cut) = (sound(&script)?, sound(&rest)?);
        for process in cut.processes.keys().filter(|process| **process == 0 || script.steps.iter().any(|step| step.thread == **process)) {
            let mut wanted = open_files(&all, *process);
            let mut have = open_files(&cut, *process);
            // One without a name has one of ours.
            for (name, _) in wanted.values_mut().chain(have.values_mut()) {
                *name = name.take().filter(|name| !name.starts_with(b"etude_cut"));
            }
            // Positions that processes share may have been moved by one that is not there any more.
            let names = |files: &BTreeMap<i32, (Option<Vec<u8>>, u64)>| -> Vec<_> {
                files.iter().map(|(number, (name, _))| (*number, name.clone())).collect()
            };
            prop_assert_eq!(names(&have), names(&wanted));
            if all.processes.len() == 1 {
                prop_assert_eq!(have, wanted);
            }
        }
    }

    #[test]
    fn a_cut_is_no_longer_than_what_was_asked_for(script in drawn(true), ends in (0.0..1.0_f64, 0.0..1.0_f64)) {
        let at = |part: f64| (length(&script) as f64 * part) as u64;
        let (from, to) = (at(ends.0.min(ends.1)), at(ends.0.max(ends.1)) + 1);
        let part = cut(&script, from, to).unwrap();
        sound(&part)?;
        // The last call may reach beyond.
        let longest = script.steps.iter().filter_map(|step| match &step.action {
            Action::Call(called) => called.duration_ns,
            _ => None,
        }).max().unwrap_or(0);
        prop_assert!(length(&part) <= to - from + longest);
        for (thread, ns) in spent(&part) {
            prop_assert!(ns <= to - from + longest, "thread {thread} takes {ns}");
        }
    }

    #[test]
    fn a_part_of_the_calls_takes_as_long_as_all(script in scripts(), class in 0_usize..5, path in 0_usize..6) {
        let name = String::from_utf8_lossy(PATHS[path]).into_owned();
        let glob = Glob::new(PATHS[path]).unwrap();
        let wanted = Class::value_variants()[class];
        for part in [filter(&script, &[], &[wanted]).unwrap(), only_files(&script, &[glob]).unwrap()] {
            sound(&part)?;
            prop_assert_eq!(spent(&part), spent(&script), "{}", name);
        }
        let part = filter(&script, &[], &[wanted]).unwrap();
        let of_class = |script: &Script| calls(script).into_iter().filter(|(_, action)| {
            matches!(action, Action::Call(called) if Class::of(called.call) == wanted)
        }).count();
        prop_assert_eq!(of_class(&part), of_class(&script));
        let all = only_files(&script, &[Glob::new(b"**").unwrap()]).unwrap();
        let of_files = |script: &Script| calls(script).into_iter().filter(|(_, action)| {
            matches!(action, Action::Call(called) if !called.call.name().starts_with("pipe"))
        }).count();
        prop_assert!(of_files(&all) <= of_files(&script));
    }

    #[test]
    fn rounds_begin_and_end_alike(script in scripts(), times in 1_u32..4) {
        let own = repeat(&script, times, Rounds::Own).unwrap();
        sound(&own)?;
        let many = |script: &Script| script.steps.iter().filter(|step| {
            matches!(&step.action, Action::Call(called) if called.duration_ns.is_some())
        }).count();
        prop_assert_eq!(many(&own), times as usize * many(&script));
        let total = |script: &Script| spent(script).values().sum::<u64>();
        prop_assert_eq!(total(&own), u64::from(times) * total(&script));
        if let Ok(same) = repeat(&script, times, Rounds::Same) {
            prop_assert_eq!(names(&sound(&same)?), names(&sound(&script)?));
            prop_assert_eq!(many(&same), times as usize * many(&script));
        } else {
            prop_assert!(times > 1);
        }
    }

    #[test]
    fn scripts_side_by_side_do_not_meet(one in scripts(), other in scripts(), times in 1_u32..4) {
        let merged = merge(&[one.0.clone(), other.0.clone()], false).unwrap();
        let world = sound(&merged)?;
        prop_assert_eq!(calls(&merged).len(), calls(&one).len() + calls(&other).len() + 4);
        for (path, node) in world.names.all().filter(|(path, _)| !path.is_empty()) {
            let own = |letter: u8| path == [letter] || path.starts_with(&[letter, b'/']);
            prop_assert!(own(b'a') || own(b'b'), "{} {}", path.escape_ascii(), node);
        }
        prop_assert_eq!(length(&merged), length(&one).max(length(&other)));
        let cloned = clone(&one, times).unwrap();
        sound(&cloned)?;
        prop_assert_eq!(cloned.steps.len(), times as usize * (one.steps.len() + 2));
        prop_assert_eq!(check(&merge(&[one.0.clone(), one.0], true).unwrap()), Ok(()));
    }

    #[test]
    fn gaps_are_scaled_and_nothing_else(script in scripts(), factor in 0.0..8.0_f64) {
        let scaled = scale_gaps(&script, factor).unwrap();
        sound(&scaled)?;
        prop_assert_eq!(calls(&scaled), calls(&script));
        let computes = |script: &Script| script.steps.iter().filter_map(|step| match step.action {
            Action::Compute(ns) => Some(ns),
            _ => None,
        }).collect::<Vec<_>>();
        let (before, after) = (computes(&script), computes(&scaled));
        let wanted = before.iter().sum::<u64>() as f64 * factor;
        prop_assert!((after.iter().sum::<u64>() as f64 - wanted).abs() <= before.len() as f64);
    }

    #[test]
    fn sizes_are_scaled_with_the_files(script in scripts(), factor in 0.01..100.0_f64, align in 0_u32..14) {
        let same = scale_sizes(&script, Sizes { factor: 1.0, align: 1 }).unwrap();
        prop_assert_eq!(&same, &script.0);
        let align = 1 << align;
        let scaled = scale_sizes(&script, Sizes { factor, align }).unwrap();
        let world = sound(&scaled)?;
        prop_assert_eq!(scaled.steps.len(), script.steps.len());
        let mut before = World::new(&scaled);
        for step in &scaled.steps {
            if let Action::Call(called) = &step.action
                && let "read" | "write" | "pread64" = called.call.name()
                && !before.is_of_pipe(step.thread, called)
            {
                prop_assert_eq!(called.arguments[2] % align, 0);
                prop_assert!(called.result as u64 <= called.arguments[2]);
            }
            before.step(step);
        }
        for needed in &scaled.needed {
            if let What::File { bytes, .. } = needed.what {
                prop_assert_eq!(bytes % align, 0);
            }
        }
        drop(world);
    }

    #[test]
    fn any_pattern_and_any_path_do_no_harm(
        pattern in proptest::collection::vec(prop_oneof![Just(b'*'), Just(b'['), Just(b']'), Just(b'!'), Just(b'-'), Just(b'\\'), any::<u8>()], 0..12),
        path in proptest::collection::vec(any::<u8>(), 0..20)
    ) {
        if let Ok(glob) = Glob::new(&pattern) {
            glob.fits(&path);
        }
    }
}

#[test]
fn patterns_fit_as_in_a_shell() {
    for (pattern, fitting, others) in [
        ("*.c", &["a.c", ".c"][..], &["d/a.c", "a.h"][..]),
        ("**/*.c", &["a.c", "d/e/a.c"], &["a.h"]),
        ("src/**", &["src/a", "src/d/b"], &["src", "srca"]),
        ("a?[b-d]", &["axb", "axd"], &["axe", "a/b"]),
        ("[!a]", &["b"], &["a", "/"]),
        ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab"]),
        ("/a\\*", &["a*"], &["ab"]),
    ] {
        let glob = Glob::new(pattern.as_bytes()).unwrap();
        fitting.iter().for_each(|path| assert!(glob.fits(path.as_bytes()), "{pattern} {path}"));
        others.iter().for_each(|path| assert!(!glob.fits(path.as_bytes()), "{pattern} {path}"));
    }
    assert!(Glob::new(b"").is_err() && Glob::new(b"[a").is_err() && Glob::new(b"[").is_err());
}

fn read(text: &str) -> Script {
    parse("s", format!("etude script 1\n{text}").as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}")).script
}

fn shown(script: &Script) -> String {
    let mut text = Vec::new();
    write(script, &mut text).unwrap();
    String::from_utf8(text).unwrap().replacen("etude script 1\n", "", 1)
}
