//! `etude capture`: a program's I/O, recorded and made ready for replay, in one directory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Parser;
use etude_options::Failed;
use etude_quantity::counted;
use etude_replay::Edges;
use etude_replay::capture::{ROLL, SCRIPT, seal};
use etude_script::{Needed, Report, What};
use etude_terminal::say;

/// The exit status for a trace that is cut short.
const CUT_SHORT: u8 = 9;
const TRACE: &str = "io.trace";

/// Record a program's I/O, ready for replay
#[derive(Parser)]
#[command(
    override_usage = "-o CAPTURE [options] [--] COMMAND [ARGUMENT ...]",
    after_help = "etude replay CAPTURE plays it. The program runs as it would otherwise, with its own input, output and exit \
                  status. To keep its trace, to cut, scale or merge: etude record, script, prepare and compile. More: \
                  docs/howto/replay.md.\n\nexit status: the program's; 128+n for signal n; 127 not found; 126 not executable; 2 \
                  usage; 5 it could not be recorded or CAPTURE not be written, and there is none; 9 the trace was cut short, and \
                  CAPTURE has the part before"
)]
struct Options {
    /// The directory for the script and the roll; it must not be there yet, and best lies outside of what COMMAND reads
    #[arg(short, long, value_name = "CAPTURE")]
    output: PathBuf,
    /// As of etude record
    #[arg(long, value_name = "HOW")]
    technique: Option<OsString>,
    /// As of etude record
    #[arg(long, value_name = "WAY")]
    left: Option<OsString>,
    /// As of etude script
    #[arg(long)]
    without_run_delay: bool,
    /// As of etude compile
    #[arg(long, value_name = "KINDS", value_parser = Edges::option, default_value = "all")]
    order: Edges,
    /// Print only errors and warnings
    #[arg(short, long)]
    quiet: bool,
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the verb; its exit status.
pub fn capture(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude capture", arguments, |options: Options| captured(&options))
}

fn captured(options: &Options) -> Result<u8, Failed> {
    let (directory, shown) = (&options.output, options.output.display());
    fs::create_dir(directory).map_err(|error| {
        let advice = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "remove it, or name another with -o",
            _ => "name another with -o",
        };
        (format!("{shown}: cannot be made: {error}; {advice}"), 5)
    })?;
    let status = recorded(options);
    if !directory.join(TRACE).exists() {
        let _ = fs::remove_dir(directory);
        return Ok(status);
    }
    let report = made(options).map_err(|(line, code)| {
        let _ = fs::remove_dir_all(directory);
        (format!("{line}; the program ended with {status}, and nothing is left of its capture"), code)
    })?;
    match report.warning {
        Some(why) => Err((format!("{shown}: {why}; the capture has what is there"), CUT_SHORT)),
        None => Ok(status),
    }
}

/// Records the program; its exit status, or that of `etude record` where there is no trace.
fn recorded(options: &Options) -> u8 {
    let mut words: Vec<OsString> = vec!["-q".into(), "-o".into(), options.output.join(TRACE).into()];
    let passed = [("--technique", &options.technique), ("--left", &options.left)];
    let passed = passed.into_iter().filter_map(|(name, value)| Some([name.into(), value.clone()?]));
    words.extend(passed.flatten());
    words.push("--".into());
    words.extend(options.command.iter().cloned());
    etude_record::main(words.into_iter())
}

/// Makes script and roll of the trace, and removes that.
fn made(options: &Options) -> Result<Report, Failed> {
    let directory = &options.output;
    let trace = directory.join(TRACE);
    let rules = etude_script::Options {
        without_run_delay: options.without_run_delay,
        ..etude_script::Options::default()
    };
    let (script, report) = etude_script::from_trace(&trace, &rules)
        .map_err(|error| (format!("{}: {error}", trace.display()), 5))?;
    let written =
        |name: &str, error: std::io::Error| (format!("{}: {error}", directory.join(name).display()), 5);
    let mut out = created(&directory.join(SCRIPT)).map_err(|error| written(SCRIPT, error))?;
    etude_script::write(&script, &mut out)
        .and_then(|()| out.into_inner().map(drop).map_err(std::io::IntoInnerError::into_error))
        .map_err(|error| written(SCRIPT, error))?;
    let out = created(&directory.join(ROLL)).map_err(|error| written(ROLL, error))?;
    let (out, compiled) =
        etude_replay::compile_with(&script, options.order, out).map_err(|error| written(ROLL, error))?;
    out.into_inner().map_err(|error| written(ROLL, error.into_error()))?;
    fs::remove_file(&trace).map_err(|error| written(TRACE, error))?;
    seal(directory, &options.command, report.run_delay).map_err(|error| written("capture.json", error))?;
    if !options.quiet {
        let (files, bytes) = to_prepare(&script.needed);
        say(&format!(
            "etude capture: {}: {} of {}, {}; it needs {} of {}",
            directory.display(),
            counted(compiled.calls, "call"),
            counted(compiled.threads as u64, "thread"),
            compiled.waits_text(),
            counted(files, "file"),
            counted(bytes, "byte")
        ));
        report.run_delay_warning().into_iter().for_each(|line| say(&format!("etude capture: {line}")));
    }
    Ok(report)
}

fn created(path: &Path) -> std::io::Result<BufWriter<File>> {
    File::options().write(true).create_new(true).open(path).map(BufWriter::new)
}

/// How many files a replay builds, and their bytes.
fn to_prepare(needed: &[Needed]) -> (u64, u64) {
    let sizes = needed.iter().filter_map(|each| match each.what {
        What::File { bytes, .. } => Some(bytes),
        _ => None,
    });
    sizes.fold((0, 0), |(files, all), bytes| (files + 1, all.saturating_add(bytes)))
}
