//! `etude-engine fill` and `etude-engine fragments`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser};
use etude_options::{Failed, values};
use etude_terminal::escaped;
use serde_json::{Map, Value, json};

use crate::ending::catch_signals;
use crate::fill::{Goal, fill, remove};
use crate::fragments::{below, free_below};

/// Options that all verbs of disks have: how the answer is printed.
#[derive(Args, Clone, Copy)]
pub struct Printed {
    /// One line of JSON
    #[arg(long, overrides_with = "block")]
    json: bool,
    /// A block for $APLOG
    #[arg(long, overrides_with = "json")]
    block: bool,
}

impl Printed {
    /// `name`: of a block.
    pub fn shape(self, name: &'static str) -> Shape {
        match (self.json, self.block) {
            (true, _) => Shape::Json,
            (_, true) => Shape::Block(name),
            _ => Shape::Words,
        }
    }
}

/// Fill a file system to a level, by a file etude-fill in DIR
#[derive(Parser)]
#[command(
    group = ArgGroup::new("goal").args(["to", "leave", "remove"]).required(true),
    override_usage = "DIR --to SHARE | --leave BYTES [options]\n--remove DIR",
    after_help = "BYTES may have K, M, G or T (powers of 1024) behind it. More: docs/howto/disk-state.md.\n\nexit status: 0; 1 the level \
                  was not reached (it says how far); 2 usage; 5 the machine does not allow it; 128 + signal"
)]
struct FillOptions {
    /// So much of what everybody can use, as df counts it: 80% or 0.8
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    to: Option<f64>,
    /// Instead: leave so much available
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    leave: Option<u64>,
    /// Write the bytes; else the space is only taken (fallocate), which is quick
    #[arg(long)]
    written: bool,
    /// Remove first what was made before
    #[arg(long)]
    again: bool,
    /// Remove the file
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    printed: Printed,
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// In how many pieces files lie on the disk, and free space where the file system tells
#[derive(Parser)]
#[command(
    after_help = "Directories are looked through without following links or leaving their file system. More: \
                  docs/howto/disk-state.md.\n\nexit status: 0; 2 usage, or there is no such path; 5 the machine does not allow it"
)]
struct FragmentsOptions {
    /// Also a line for each file: FRAGMENTS PATH
    #[arg(long)]
    each: bool,
    #[command(flatten)]
    printed: Printed,
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
}

/// `etude-engine fill`; the exit status.
pub fn fill_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine fill", arguments, fill_command)
}

/// `etude-engine fragments`; the exit status.
pub fn fragments_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine fragments", arguments, fragments_command)
}

fn fill_command(options: FillOptions) -> Result<u8, Failed> {
    let directory = &options.directory;
    let goal = match (options.to, options.leave) {
        (Some(level), _) => Goal::Level(level),
        (None, Some(bytes)) => Goal::Leave(bytes),
        (None, None) => return remove(directory).map(|()| 0),
    };
    if options.again && directory.join(crate::fill::NAME).exists() {
        remove(directory)?;
    }
    catch_signals();
    let done = fill(directory, goal, options.written)?;
    let shown = |name: &str| done[name].as_f64().unwrap_or_default();
    say(options.printed.shape("filling"), &done, || {
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

fn fragments_command(options: FragmentsOptions) -> Result<u8, Failed> {
    let FragmentsOptions { each: listed, paths, .. } = &options;
    let shape = options.printed.shape("fragments");
    let mut lines = Vec::new();
    let summary = below(paths, &mut |path, fragments| {
        if *listed {
            lines.push(json!([fragments, path.to_string_lossy()]));
        }
    })?;
    let (free, why_free) = free_below(&paths[0]);
    let mut members = summary.members();
    members.insert("free".to_owned(), json!(free));
    members.insert("why_free".to_owned(), json!(why_free));
    if *listed && shape == Shape::Json {
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
