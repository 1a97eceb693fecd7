//! `etude record [-o FILE] [options] -- COMMAND`.

use std::ffi::{CString, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Parser, ValueEnum};
use etude_options::values;
use etude_quantity::counted;
use etude_terminal::complain;

use crate::ebpf::{self, Subject};
use crate::output::Output;
use crate::record::{Recording, Target, record, resolve};
use crate::rewrite::clock::{Clock, counter_is_sound};
use crate::rewrite::method::Technique;
use crate::rewrite::remote::Pid;
use crate::rewrite::rights;
use crate::sink::{Completeness, Summary};

const PROGRAM: &str = "etude record";

/// Record a program's I/O: each call, when, with which result, per thread of every process that it starts
#[derive(Parser)]
#[command(
    group = ArgGroup::new("subject").args(["command", "pid"]).required(true),
    override_usage = "[-o FILE] [options] [--] COMMAND [ARGUMENT ...]\n[-o FILE] [options] -p PID",
    after_help = "The program runs as it would otherwise, with its own input, output and exit status; what there is to say \
                  of the trace is printed on standard error when it has ended. More: docs/howto/recording.md.\n\nexit status: the \
                  program's, 0 if it runs on; 128+n for signal n; 127 not found; 126 not executable; 2 usage; 5 it could \
                  not be recorded, and was not started; or its trace was removed while it ran"
)]
struct Options {
    /// The trace (default NAME-UTCTIME.trace in $XDG_STATE_HOME/etude/traces or ~/.local/state/etude/traces, so that a
    /// program that reads its directory does not meet it); it must not be there yet
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Record a running process, by ptrace, until it ends or the recorder is interrupted
    #[arg(short, long, value_parser = values::whole::<Pid>(1..=Pid::MAX as u64))]
    pid: Option<Pid>,
    /// auto (default): the processor's time stamp counter where the kernel trusts it; tsc; vdso
    #[arg(long, default_value = "auto")]
    clock: ClockOption,
    /// When a thread is quicker than the recorder: wait (default), or drop and count
    #[arg(long, value_name = "WAY", value_parser = ["wait", "drop"], default_value = "wait")]
    full: String,
    /// rewrite (default on x86-64, only there): by jumps in the program's own code, some 20 to 50 ns a call; ptrace: each
    /// call stops its thread, some 20 µs a call, for code that cannot be rewritten; ebpf: bpftrace watches in the
    /// kernel, for root
    #[arg(long, value_name = "HOW")]
    technique: Option<TechniqueOption>,
    /// Places in the code that no jump can take: skip (default), they are named; or stop, each call there stops its
    /// thread twice, and is recorded
    #[arg(long, value_name = "WAY", value_parser = ["skip", "stop"], default_value = "skip")]
    left: String,
    /// Do not look at the files that the program named when it has ended: a script of this trace will know less of how
    /// long they were
    #[arg(long)]
    no_snapshot: bool,
    /// Print only errors and warnings
    #[arg(short, long)]
    quiet: bool,
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClockOption {
    Auto,
    Tsc,
    Vdso,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TechniqueOption {
    Rewrite,
    Ptrace,
    Ebpf,
}

/// Runs the verb; its exit status.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run(PROGRAM, arguments, |options: Options| {
        options.check().map_err(|why| etude_options::usage(PROGRAM, why))?;
        Ok(options.pid.map_or_else(|| started(&options), |pid| attached(&options, pid)))
    })
}

impl Options {
    /// Checks for options that this processor, or a process that runs already, does not allow.
    fn check(&self) -> Result<(), String> {
        let here = crate::PROCESSOR.name();
        let rewrites = self.technique == Some(TechniqueOption::Rewrite);
        if rewrites && !cfg!(target_arch = "x86_64") {
            return Err(format!(
                "--technique rewrite: not available on {here}; leave it out, ptrace is taken"
            ));
        }
        if self.clock == ClockOption::Tsc && !cfg!(target_arch = "x86_64") {
            return Err(
                "--clock tsc: no time stamp counter on this processor; leave it out, vdso is taken".into()
            );
        }
        if rewrites && self.pid.is_some() {
            return Err(
                "-p: a process that runs already is recorded by ptrace or ebpf; leave out --technique".into(),
            );
        }
        Ok(())
    }

    fn technique(&self) -> Technique {
        match self.technique {
            Some(TechniqueOption::Ptrace) => Technique::Ptrace,
            _ => Technique::DEFAULT,
        }
    }

    fn clock(&self) -> Clock {
        match self.clock {
            ClockOption::Tsc => Clock::Tsc,
            ClockOption::Auto if counter_is_sound().is_ok() => Clock::Tsc,
            _ => Clock::Vdso,
        }
    }
}

fn attached(options: &Options, pid: Pid) -> u8 {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_else(|_| pid.to_string().into());
    if options.technique == Some(TechniqueOption::Ebpf) {
        return watch(options, &Subject::Process(pid), &format!("process {pid}"), &path);
    }
    finish(options, &path, Technique::Ptrace, Target::Process(pid), |error| format!("process {pid}: {error}"))
}

fn started(options: &Options) -> u8 {
    let program = &options.command[0];
    let name = program.to_string_lossy();
    let path = match resolve(program) {
        Ok(path) => path,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return complain(&format!("{name}: not found; give the path of a program"), 127);
        }
        Err(_) => return complain(&format!("{name}: cannot be executed; see its permissions"), 126),
    };
    let words = options.command.iter().map(|word| CString::new(word.as_bytes()));
    let Ok(argv) = words.collect::<Result<Vec<_>, _>>() else {
        return complain("an argument has a zero byte in it", 2);
    };
    if options.technique == Some(TechniqueOption::Ebpf) {
        return watch(options, &Subject::Command(argv), &name, &path);
    }
    if let Some(why) = privileged(&path) {
        return complain(&format!("{name}: {why}: traced, it would run without them; record it as root"), 5);
    }
    finish(options, &path, options.technique(), Target::Command(argv), |error| {
        let advice = match error.kind() {
            ErrorKind::PermissionDenied => "; is ptrace allowed (containers may forbid it)?",
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "; make room, or name a place that has some with -o"
            }
            _ => "",
        };
        format!("{name}: cannot be recorded here: {error}{advice}")
    })
}

/// By eBPF.
fn watch(options: &Options, subject: &Subject, name: &str, path: &Path) -> u8 {
    let (output, file) = match Output::make(options.output.as_deref(), path) {
        Ok(made) => made,
        Err(line) => return complain(&line, 5),
    };
    match ebpf::record(subject, file) {
        Ok(outcome) => {
            tell(&outcome.summary, &output, options.quiet);
            ended(&output, outcome.status)
        }
        Err(error) => {
            let _ = std::fs::remove_file(&output.path);
            complain(&format!("{name}: cannot be recorded by eBPF: {error}"), 5)
        }
    }
}

/// Records into a new file; what is said where that cannot be begun is `refused`.
fn finish(
    options: &Options,
    path: &Path,
    technique: Technique,
    target: Target,
    refused: impl Fn(std::io::Error) -> String,
) -> u8 {
    let (output, file) = match Output::make(options.output.as_deref(), path) {
        Ok(made) => made,
        Err(line) => return complain(&line, 5),
    };
    match record(
        &Recording {
            target,
            clock: options.clock(),
            drop_when_full: options.full == "drop",
            technique,
            stop_left: options.left == "stop",
            snapshot: !options.no_snapshot,
        },
        file,
    ) {
        Ok(outcome) => {
            tell(&outcome.summary, &output, options.quiet);
            if outcome.run_on > 0 && !options.quiet {
                complain!("etude record: {} processes run on, as they were", outcome.run_on);
            }
            ended(&output, outcome.status)
        }
        Err(error) => {
            let _ = std::fs::remove_file(&output.path);
            complain(&refused(error), 5)
        }
    }
}

/// Whether the program gets rights from its file that the kernel takes from a traced one.
fn privileged(path: &Path) -> Option<&'static str> {
    // SAFETY: no arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    if user == 0 { None } else { rights::of_file(path, user, group) }
}

/// The exit status of a recording that came to its end: the program's, if there is a trace.
fn ended(output: &Output, status: i32) -> u8 {
    let status = status_of(status);
    output.lost().map_or(status, |why| {
        let shown = output.path.display();
        complain(
            &format!("{shown}: there is no trace: {why}, while the program ran (it ended with {status})"),
            5,
        )
    })
}

fn status_of(status: i32) -> u8 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) as u8 } else { 128 + libc::WTERMSIG(status) as u8 }
}

fn complain(line: &str, code: u8) -> u8 {
    complain!("etude record: {line}");
    code
}

fn tell(summary: &Summary, output: &Output, quiet: bool) {
    let output = output.path.display();
    if let Some(why) = &summary.cut {
        complain!("etude record: {output}: the trace ends early: {why}; the program ran on unrecorded");
    }
    if summary.dropped > 0 {
        complain!("etude record: {} calls are not in the trace: they found no room", summary.dropped);
    }
    for why in &summary.unrecorded {
        complain!("etude record: not recorded: {why}");
    }
    for why in &summary.by_stops {
        complain!("etude record: recorded by ptrace, some 20 µs a call: {why}");
    }
    completeness(summary, quiet);
    for (path, count) in summary.left.iter().filter(|_| !quiet) {
        complain!(
            "etude record: {path}: calls at {} could not be changed: the trace lists them",
            counted(*count as u64, "place")
        );
    }
    if !quiet {
        let each = summary.bytes as f64 / summary.events.max(1) as f64;
        let (events, bytes, processes) = (summary.events, summary.bytes, summary.processes);
        complain!(
            "etude record: {output}: {} of {}, {bytes} bytes ({each:.2} a call)",
            counted(events, "call"),
            counted(u64::from(processes), "process")
        );
    }
}

fn completeness(summary: &Summary, quiet: bool) {
    let Completeness { kernel, recorded, again, uncounted, unknown, incomplete } = &summary.completeness;
    for each in incomplete {
        let kernel = each.kernel.unwrap_or_default();
        complain!(
            "etude record: incomplete: thread {} of process {}: {} of {} reads, {} of {} writes",
            each.thread,
            each.process,
            each.recorded.reads,
            kernel.reads,
            each.recorded.writes,
            kernel.writes
        );
    }
    if *unknown > 0 {
        complain!("etude record: {unknown} threads ended before the kernel's counts of them could be read");
    }
    if !quiet {
        let again = (*again > 0).then(|| format!("; {again} it counted twice, after a signal"));
        let uncounted = (*uncounted > 0).then(|| format!("; {uncounted} failed, and it did not count them"));
        complain!(
            "etude record: {} of {} reads and {} of {} writes that the kernel counted{}{}",
            recorded.reads,
            kernel.reads,
            recorded.writes,
            kernel.writes,
            again.unwrap_or_default(),
            uncounted.unwrap_or_default()
        );
    }
}
