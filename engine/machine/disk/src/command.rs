//! `etude-engine fill` and `etude-engine fragments`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etude_terminal::escaped;

use serde_json::{Map, Value, json};

use crate::Wrong;
use crate::arguments::{answer, bytes, each, share, usage};
use crate::ending::catch_signals;
use crate::fill::{Goal, fill, remove};
use crate::fragments::{below, free_below};

const FILL: &str = "\
Fill a file system to a level, by a file etude-fill in DIR.

usage: etude-engine fill DIR --to SHARE | --leave BYTES [options]
       etude-engine fill --remove DIR

      --to SHARE       so much of what everybody can use, as df counts it: 80% or 0.8
      --leave BYTES    instead: leave so much available
      --written        write the bytes; else the space is only taken (fallocate), which is quick
      --again          remove first what was made before
      --remove         remove the file
      --json, --block  one line of JSON; a block for $APLOG
  -h, --help

BYTES may have K, M, G or T (powers of 1024) behind it. More: docs/disk-state.md.

exit status: 0; 1 the level was not reached (it says how far); 2 usage; 5 the machine does not allow it; 128 + signal
";

const FRAGMENTS: &str = "\
In how many pieces files lie on the disk, and free space where the file system tells.

usage: etude-engine fragments PATH... [options]

      --each           also a line for each file: FRAGMENTS PATH
      --json, --block  one line of JSON; a block for $APLOG
  -h, --help

Directories are looked through without following links or leaving their file system. More: docs/disk-state.md.

exit status: 0; 2 usage, or there is no such path; 5 the machine does not allow it
";

/// `etude-engine fill`; the exit status.
pub fn fill_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("fill", fill_command(arguments))
}

/// `etude-engine fragments`; the exit status.
pub fn fragments_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("fragments", fragments_command(arguments))
}

fn fill_command(arguments: impl Iterator<Item = OsString>) -> Result<u8, Wrong> {
    let (mut to, mut leave, mut written, mut removing, mut again, mut help) =
        (None, None, false, false, false, false);
    let mut shape = Shape::Words;
    let mut paths = Vec::new();
    each("fill", arguments, |name, value| {
        match name {
            Some("to") => to = Some(share(value()?)?),
            Some("leave") => leave = Some(bytes(value()?)?),
            Some("written") => written = true,
            Some("remove") => removing = true,
            Some("again") => again = true,
            Some("json") => shape = Shape::Json,
            Some("block") => shape = Shape::Block("filling"),
            Some("help") => help = true,
            Some(_) => return Ok(false),
            None => paths.push(PathBuf::from(value()?)),
        }
        Ok(true)
    })?;
    if help {
        print!("{FILL}");
        return Ok(0);
    }
    let directory = one("fill", &paths)?;
    if removing {
        return remove(directory).map(|()| 0);
    }
    let goal = match (to, leave) {
        (Some(level), None) => Goal::Level(level),
        (None, Some(bytes)) => Goal::Leave(bytes),
        _ => return Err(usage("fill", "expected either --to or --leave")),
    };
    if again && directory.join(crate::fill::NAME).exists() {
        remove(directory)?;
    }
    catch_signals();
    let done = fill(directory, goal, written)?;
    let shown = |name: &str| done[name].as_f64().unwrap_or_default();
    say(shape, &done, || {
        format!(
            "{:.2}% -> {:.2}% of {:.1} MiB by {} ({:.1} s): {}",
            shown("level_before") * 100.0,
            shown("level") * 100.0,
            mib(shown("capacity_bytes")),
            directory.join(crate::fill::NAME).display(),
            shown("seconds"),
            done["ended"].as_str().unwrap_or_default()
        )
    });
    Ok(status(&done))
}

fn fragments_command(arguments: impl Iterator<Item = OsString>) -> Result<u8, Wrong> {
    let (mut listed, mut shape, mut help) = (false, Shape::Words, false);
    let mut paths = Vec::new();
    each("fragments", arguments, |name, value| {
        match name {
            Some("each") => listed = true,
            Some("json") => shape = Shape::Json,
            Some("block") => shape = Shape::Block("fragments"),
            Some("help") => help = true,
            Some(_) => return Ok(false),
            None => paths.push(PathBuf::from(value()?)),
        }
        Ok(true)
    })?;
    if help {
        print!("{FRAGMENTS}");
        return Ok(0);
    }
    let first = paths.first().ok_or_else(|| usage("fragments", "no path is given"))?;
    let mut lines = Vec::new();
    let summary = below(&paths, &mut |path, fragments| {
        if listed {
            lines.push(json!([fragments, path.to_string_lossy()]));
        }
    })?;
    let (free, why_free) = free_below(first);
    let mut members = summary.members();
    members.insert("free".to_owned(), json!(free));
    members.insert("why_free".to_owned(), json!(why_free));
    if listed && shape == Shape::Json {
        members.insert("each".to_owned(), json!(lines));
    } else {
        for line in &lines {
            println!(
                "{} {}",
                line[0].as_u64().map_or("?".to_owned(), |n| n.to_string()),
                escaped(line[1].as_str().unwrap_or_default())
            );
        }
    }
    say(shape, &members, || in_words(&members));
    Ok(0)
}

fn in_words(found: &Map<String, Value>) -> String {
    let count = |name: &str| found[name].as_u64().unwrap_or_default();
    let mut text = format!("{} files of {:.1} MiB", count("files"), mib(count("bytes") as f64));
    if let Some(mean) = found["mean"].as_f64() {
        text += &format!(
            "; {:.2} fragments a file ({} in {} files on the disk), most {} in {}",
            mean,
            count("fragments"),
            count("on_disk"),
            count("most"),
            found["most_of"].as_str().unwrap_or_default()
        );
    }
    if let Some(score) = found["layout_score"].as_f64() {
        text += &format!("; layout score {score:.4}");
    }
    if count("unknown") > 0 {
        text += &format!(
            "; of {} not known: {}",
            count("unknown"),
            found["why_unknown"].as_str().unwrap_or_default()
        );
    }
    let free = &found["free"];
    text + &free["pieces"].as_u64().map_or_else(
        || format!("\nfree space: not known: {}", found["why_free"].as_str().unwrap_or_default()),
        |pieces| {
            let bytes = |name: &str| mib(free[name].as_f64().unwrap_or_default());
            format!(
                "\nfree space: {:.1} MiB in {pieces} pieces, the largest {:.1} MiB; {:.1} MiB in pieces below 1 MiB",
                bytes("bytes"),
                bytes("largest_bytes"),
                bytes("below_1_mib_bytes")
            )
        },
    )
}

/// The one path of a command.
pub fn one<'a>(verb: &str, paths: &'a [PathBuf]) -> Result<&'a Path, Wrong> {
    match paths {
        [path] => Ok(path),
        [] => Err(usage(verb, "no path is given")),
        [_, other, ..] => Err(usage(verb, format!("one path too many: {}", other.display()))),
    }
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Words,
    Json,
    /// For $APLOG, with this name.
    Block(&'static str),
}

pub fn say(shape: Shape, members: &Map<String, Value>, words: impl FnOnce() -> String) {
    match shape {
        Shape::Words => println!("{}", escaped(&words())),
        Shape::Json => println!("{}", escaped(&Value::Object(members.clone()).to_string())),
        Shape::Block(name) => print!("{}", escaped(&format!("[{name}]\n{}", lines("", members)))),
    }
}

/// `NAME = VALUE` for each member, those of an object behind its own name and a dot.
fn lines(before: &str, members: &Map<String, Value>) -> String {
    let line = |(name, value): (&String, &Value)| match value {
        Value::Object(below) => lines(&format!("{before}{name}."), below),
        Value::String(text) => format!("{before}{name} = {}\n", text.replace('\n', " ")),
        value => format!("{before}{name} = {value}\n"),
    };
    members.iter().map(line).collect()
}

pub fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// 0 where it came to its end, 128 + signal, 1.
pub fn status(done: &Map<String, Value>) -> u8 {
    let ended = done["ended"].as_str().unwrap_or_default();
    let signal = ended.strip_prefix("signal ").and_then(|number| number.parse::<u8>().ok());
    signal.map_or(u8::from(done["complete"] != true), |signal| 128 + signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_a_line_for_each_member_and_none_is_a_header() {
        let members = json!({"a": 1, "b": {"c": null, "d": "x\n[measurement]"}, "e": [1.5, 2.0]});
        let text = lines("", members.as_object().expect("an object"));
        assert_eq!(text, "a = 1\nb.c = null\nb.d = x [measurement]\ne = [1.5,2.0]\n");
    }
}
