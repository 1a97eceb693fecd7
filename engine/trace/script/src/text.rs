//! A script as text (docs/howto/scripts.md).

use std::io::{self, Write};

use etude_calls::{Call, Kind};
use etude_terminal::steers;
use etude_trace::{Scheduling, words};

use crate::model::{Action, Called, Dropped, Needed, Script, Step, What};

/// The first line of each script.
pub const HEAD: &str = "etude script 1";

/// Bytes that are collected before they are written.
const PIECE: usize = 1 << 16;

/// Writes a script.
pub fn write(script: &Script, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let mut text = format!("{HEAD}\n");
    for note in &script.notes {
        let clean = one_line(note);
        text += if clean.is_empty() { "#" } else { "# " };
        text += &clean;
        text.push('\n');
    }
    if let Some(Scheduling { policy, priority, nice }) = script.scheduling {
        text += &format!("scheduling {} priority {priority} nice {nice}\n", policy.name());
    }
    for needed in &script.needed {
        need(&mut text, needed);
        pass_on(&mut text, out)?;
    }
    for dropped in &script.dropped {
        drop_line(&mut text, dropped);
    }
    let many = script.steps.iter().any(|step| step.thread != 0);
    for one in &script.steps {
        if many {
            words::number(&mut text, i64::from(one.thread));
            text.push_str(": ");
        }
        step(&mut text, one);
        text.push('\n');
        pass_on(&mut text, out)?;
    }
    out.write_all(text.as_bytes())
}

/// A text without what would end its line or hide a part of it.
pub fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() || steers(letter) { ' ' } else { letter }).collect()
}

fn pass_on(text: &mut String, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    if text.len() > PIECE {
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    Ok(())
}

fn need(out: &mut String, needed: &Needed) {
    let mut named = |word: &str| {
        out.push_str(word);
        words::quoted(out, &needed.path);
    };
    match &needed.what {
        What::File { bytes, allocated, seen } => {
            named("file ");
            out.push_str(if *seen { " " } else { " at least " });
            out.push_str(&bytes.to_string());
            if let Some(allocated) = allocated {
                out.push_str(" sparse ");
                out.push_str(&allocated.to_string());
            }
        }
        What::Directory => named("directory "),
        What::Link(to) => {
            named("link ");
            out.push_str(" to ");
            words::quoted(out, to);
        }
        What::HardLink(of) => {
            named("name ");
            out.push_str(" of ");
            words::quoted(out, of);
        }
    }
    out.push('\n');
}

fn drop_line(out: &mut String, dropped: &Dropped) {
    let Dropped { call, why, calls, bytes, requests, ns } = dropped;
    out.push_str("dropped ");
    out.push_str(call);
    out.push(' ');
    words::quoted(out, why.as_bytes());
    for (many, unit) in [(calls, " calls"), (bytes, " bytes"), (requests, " requests")] {
        out.push(' ');
        out.push_str(&many.to_string());
        out.push_str(unit);
    }
    out.push(' ');
    words::seconds(out, *ns);
    out.push('\n');
}

/// Appends a step without its thread and without the end of its line.
pub fn step(out: &mut String, step: &Step) {
    let mut numbered = |word: &str, thread: u32| {
        out.push_str(word);
        words::number(out, i64::from(thread));
        out.push(')');
    };
    match &step.action {
        Action::Compute(ns) => {
            out.push_str("compute(");
            words::seconds(out, *ns);
            out.push(')');
        }
        Action::Start(thread) => numbered("start(", *thread),
        Action::Fork(thread) => numbered("fork(", *thread),
        Action::Wait(thread) => numbered("wait(", *thread),
        Action::Exec => out.push_str("exec()"),
        Action::Call(called) => call(out, called),
    }
}

fn call(out: &mut String, called: &Called) {
    out.push_str(called.call.name());
    out.push('(');
    let (mut at, mut first) = (0, true);
    while let Some((index, kind)) = next_shown(called.call, &called.arguments, at) {
        if !first {
            out.push_str(", ");
        }
        words::argument(out, kind, called.arguments[index], called.text(index));
        (at, first) = (index + 1, false);
    }
    out.push_str(") = ");
    words::result(out, called.call, called.result);
    if let Some(ns) = called.duration_ns {
        out.push_str(" <");
        words::seconds(out, ns);
        out.push('>');
    }
}

/// True if an argument of this kind stands in a script: where data stand in memory does not.
pub fn shown(kind: Kind) -> bool {
    !matches!(kind, Kind::Buffer | Kind::Pointer | Kind::Iovec | Kind::Unused | Kind::Command)
}

/// The next argument from `index` on that a script has, given those before it.
pub fn next_shown(call: Call, arguments: &[u64; 6], index: usize) -> Option<(usize, Kind)> {
    (index..call.used(arguments))
        .map(|index| (index, call.kind(arguments, index)))
        .find(|(_, kind)| shown(*kind))
}
