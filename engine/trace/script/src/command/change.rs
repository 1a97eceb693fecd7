//! The verbs that make a script of scripts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgGroup, Args};
use etude_calls::Call;
use etude_options::{Failed, values};

use super::files;
use crate::model::Script;
use crate::ops::{self, Class, Glob, Refused, Rounds, Sizes};

/// Where a script comes from and where the new one goes.
#[derive(Args)]
pub struct Files {
    /// File of the new script (default, and -: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<OsString>,
    script: OsString,
}

#[derive(Args)]
#[command(group = ArgGroup::new("part").args(["from", "to", "files"]).required(true).multiple(true))]
pub struct Cut {
    /// Keep what began from this time of the original on, in seconds since its beginning; what was open then is opened
    /// anew
    #[arg(long, value_name = "S", value_parser = values::duration(0..=u64::MAX))]
    from: Option<u64>,
    /// Keep what began before this time
    #[arg(long, value_name = "S", value_parser = values::duration(0..=u64::MAX))]
    to: Option<u64>,
    /// Keep calls on files with such a name, at any time, and what these need; ** goes through directories; may be given
    /// again
    #[arg(long, value_name = "GLOB", value_parser = OsStringValueParser::new().try_map(glob))]
    files: Vec<Glob>,
    #[command(flatten)]
    of: Files,
}

#[derive(Args)]
#[command(group = ArgGroup::new("part").args(["calls", "classes"]).required(true).multiple(true))]
pub struct Filter {
    /// Keep these calls, and what opens and closes their descriptors
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = call)]
    calls: Vec<Call>,
    /// Keep calls of data, metadata, descriptors, memory, other
    #[arg(long, value_name = "CLASS,...", value_delimiter = ',')]
    classes: Vec<Class>,
    #[command(flatten)]
    of: Files,
}

#[derive(Args)]
pub struct Repeat {
    /// Each round has files of its own in 1/, 2/ ...
    #[arg(long)]
    own: bool,
    #[arg(value_name = "N", value_parser = values::whole::<u32>(0..=u32::MAX.into()))]
    times: u32,
    #[command(flatten)]
    of: Files,
}

#[derive(Args)]
pub struct Merge {
    /// In one directory
    #[arg(long)]
    shared: bool,
    /// File of the new script (default, and -: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<OsString>,
    #[arg(value_name = "SCRIPT", required = true)]
    scripts: Vec<OsString>,
}

#[derive(Args)]
pub struct Clone {
    #[arg(value_name = "K", value_parser = values::whole::<u32>(0..=u32::MAX.into()))]
    times: u32,
    #[command(flatten)]
    of: Files,
}

#[derive(Args)]
#[command(group = ArgGroup::new("factor").args(["sizes", "gaps"]).required(true).multiple(true))]
pub struct Scale {
    /// Transfers, file offsets and file sizes are F times as large
    #[arg(long, value_name = "F", value_parser = values::positive(f64::MAX))]
    sizes: Option<f64>,
    /// And become multiples of this
    #[arg(long, value_name = "BYTES", value_parser = values::size, requires = "sizes")]
    align: Option<u64>,
    /// The times between calls are F times as long; 0 leaves them out
    #[arg(long, value_name = "F", value_parser = values::number(0.0..=f64::MAX))]
    gaps: Option<f64>,
    #[command(flatten)]
    of: Files,
}

impl Files {
    fn changed(
        &self,
        verb: &str,
        change: impl FnOnce(Script) -> Result<Script, Refused>,
    ) -> Result<(), Failed> {
        let script = files::read(&self.script)?.script;
        files::write(&made(verb, change(script))?, self.output.as_ref())
    }
}

pub fn cut(options: &Cut) -> Result<(), Failed> {
    options.of.changed("cut", |mut script| {
        if options.from.is_some() || options.to.is_some() {
            script = ops::cut(&script, options.from.unwrap_or(0), options.to.unwrap_or(u64::MAX))?;
        }
        if options.files.is_empty() { Ok(script) } else { ops::only_files(&script, &options.files) }
    })
}

pub fn filter(options: &Filter) -> Result<(), Failed> {
    options.of.changed("filter", |script| ops::filter(&script, &options.calls, &options.classes))
}

pub fn repeat(options: &Repeat) -> Result<(), Failed> {
    let rounds = if options.own { Rounds::Own } else { Rounds::Same };
    options.of.changed("repeat", |script| ops::repeat(&script, options.times, rounds))
}

pub fn merge(options: &Merge) -> Result<(), Failed> {
    let scripts = options.scripts.iter().map(|name| Ok(files::read(name)?.script));
    let scripts = scripts.collect::<Result<Vec<Script>, Failed>>()?;
    files::write(&made("merge", ops::merge(&scripts, options.shared))?, options.output.as_ref())
}

pub fn clone(options: &Clone) -> Result<(), Failed> {
    options.of.changed("clone", |script| ops::clone(&script, options.times))
}

pub fn scale(options: &Scale) -> Result<(), Failed> {
    options.of.changed("scale", |mut script| {
        if let Some(factor) = options.sizes {
            let sizes = Sizes { factor, align: options.align.unwrap_or(1) };
            script = ops::scale_sizes(&script, sizes)?;
        }
        options.gaps.map_or(Ok(script.clone()), |factor| ops::scale_gaps(&script, factor))
    })
}

fn made(verb: &str, made: Result<Script, Refused>) -> Result<Script, Failed> {
    made.map_err(|Refused(why)| (format!("{verb}: {why}"), etude_options::USAGE))
}

fn glob(pattern: OsString) -> Result<Glob, String> {
    Glob::new(pattern.as_bytes())
}

fn call(name: &str) -> Result<Call, String> {
    Call::named(name).ok_or_else(|| format!("{name:?}: expected the name of a system call"))
}
