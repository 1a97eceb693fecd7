//! The verbs that make a script of scripts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use etude_calls::Call;
use lexopt::prelude::*;

use super::{Failed, files, usage};
use crate::model::Script;
use crate::ops::{self, Class, Glob, Refused, Rounds, Sizes};

pub const VERBS: [&str; 6] = ["cut", "filter", "repeat", "merge", "clone", "scale"];

/// What was asked for; of each verb only its own.
#[derive(Default)]
struct Options {
    output: Option<OsString>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    files: Vec<Glob>,
    calls: Vec<Call>,
    classes: Vec<Class>,
    own: bool,
    shared: bool,
    sizes: Option<f64>,
    align: Option<u64>,
    gaps: Option<f64>,
    /// What stands without a name.
    words: Vec<OsString>,
}

/// Runs a verb.
pub fn change(verb: &str, words: Vec<OsString>) -> Result<(), Failed> {
    let options = options(verb, words).map_err(|error| usage(&format!("{verb}: {error}")))?;
    let script = match verb {
        "merge" => {
            let scripts = options.words.iter().map(|name| Ok(files::read(name)?.script));
            let scripts = scripts.collect::<Result<Vec<Script>, Failed>>()?;
            made(verb, ops::merge(&scripts, options.shared))?
        }
        "repeat" | "clone" => {
            let [times, name] = &options.words[..] else {
                return Err(usage(&format!("{verb}: expected a number and a script")));
            };
            let times = times.to_str().and_then(|word| word.parse().ok());
            let times =
                times.ok_or_else(|| usage(&format!("{verb}: expected how many times, then the script")))?;
            let script = files::read(name)?.script;
            let rounds = if options.own { Rounds::Own } else { Rounds::Same };
            made(
                verb,
                if verb == "clone" {
                    ops::clone(&script, times)
                } else {
                    ops::repeat(&script, times, rounds)
                },
            )?
        }
        _ => {
            let [name] = &options.words[..] else {
                return Err(usage(&format!("{verb}: expected one script")));
            };
            enough(verb, &options)?;
            part(verb, files::read(name)?.script, &options)?
        }
    };
    files::write(&script, options.output.as_ref())
}

/// Whether anything was asked for.
fn enough(verb: &str, options: &Options) -> Result<(), Failed> {
    let (asked, expected) = match verb {
        "cut" => {
            let times = options.from_ns.is_some() || options.to_ns.is_some();
            (times || !options.files.is_empty(), "--from, --to or --files")
        }
        "filter" => (!options.calls.is_empty() || !options.classes.is_empty(), "--calls or --classes"),
        _ if options.align.is_some() && options.sizes.is_none() => (false, "--sizes beside --align"),
        _ => (options.sizes.is_some() || options.gaps.is_some(), "--sizes or --gaps"),
    };
    if asked { Ok(()) } else { Err(usage(&format!("{verb}: expected {expected}"))) }
}

fn part(verb: &str, mut script: Script, options: &Options) -> Result<Script, Failed> {
    match verb {
        "cut" => {
            if options.from_ns.is_some() || options.to_ns.is_some() {
                let (from, to) = (options.from_ns.unwrap_or(0), options.to_ns.unwrap_or(u64::MAX));
                script = made(verb, ops::cut(&script, from, to))?;
            }
            if !options.files.is_empty() {
                script = made(verb, ops::only_files(&script, &options.files))?;
            }
        }
        "filter" => script = made(verb, ops::filter(&script, &options.calls, &options.classes))?,
        _ => {
            if let Some(factor) = options.sizes {
                let sizes = Sizes { factor, align: options.align.unwrap_or(1) };
                script = made(verb, ops::scale_sizes(&script, sizes))?;
            }
            if let Some(factor) = options.gaps {
                script = made(verb, ops::scale_gaps(&script, factor))?;
            }
        }
    }
    Ok(script)
}

fn made(verb: &str, made: Result<Script, Refused>) -> Result<Script, Failed> {
    made.map_err(|Refused(why)| (format!("{verb}: {why}"), 2))
}

fn options(verb: &str, words: Vec<OsString>) -> Result<Options, lexopt::Error> {
    let mut found = Options::default();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match (verb, argument) {
            (_, Short('o') | Long("output")) => found.output = Some(parser.value()?),
            ("cut", Long("from")) => found.from_ns = Some(time("--from", &parser.value()?)?),
            ("cut", Long("to")) => found.to_ns = Some(time("--to", &parser.value()?)?),
            ("cut", Long("files")) => found.files.push(Glob::new(parser.value()?.as_bytes())?),
            ("filter", Long("calls")) => {
                for name in parser.value()?.string()?.split(',') {
                    let call =
                        Call::named(name).ok_or_else(|| format!("--calls {name}: there is no such call"))?;
                    found.calls.push(call);
                }
            }
            ("filter", Long("classes")) => {
                for name in parser.value()?.string()?.split(',') {
                    let class = Class::NAMES.iter().find(|(known, _)| *known == name);
                    let expected = Class::NAMES.map(|(known, _)| known).join(", ");
                    let class =
                        class.ok_or_else(|| format!("--classes {name}: expected some of {expected}"))?;
                    found.classes.push(class.1);
                }
            }
            ("repeat", Long("own")) => found.own = true,
            ("merge", Long("shared")) => found.shared = true,
            ("scale", Long("sizes")) => found.sizes = Some(parser.value()?.parse()?),
            ("scale", Long("gaps")) => found.gaps = Some(parser.value()?.parse()?),
            ("scale", Long("align")) => {
                let size = etude_quantity::size(&parser.value()?.string()?);
                found.align = Some(size.map_err(|why| format!("--align {why}"))?);
            }
            (_, Value(word)) => found.words.push(word),
            (_, other) => return Err(other.unexpected()),
        }
    }
    Ok(found)
}

/// In ns.
fn time(option: &str, value: &OsString) -> Result<u64, lexopt::Error> {
    etude_quantity::duration(&value.to_string_lossy(), "s").map_err(|why| format!("{option} {why}").into())
}
