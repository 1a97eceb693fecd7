//! Command lines: a verb's options are a struct that derives `clap::Parser`; this reads it, prints its help in one
//! layout, and reports what is wrong in one line.
//!
//! An option that is given again replaces its earlier value, and an option's value may begin with `-`.

mod help;
pub mod values;
mod wrong;

use std::ffi::OsString;
use std::fmt::Display;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, Parser};
use etude_terminal::complain;

/// The line of an error, without the program's name, and the exit status.
pub type Failed = (String, u8);

/// The exit status for a wrong command line.
pub const USAGE: u8 = 2;

/// Why there are no options.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The text of `--help` or `--version`.
    Text(String),
    /// One line on what is wrong.
    Wrong(String),
}

/// The options of `program`, whose arguments do not begin with its name.
///
/// # Errors
/// Help was requested, or the arguments are wrong.
pub fn read<T: Parser>(program: &str, arguments: impl IntoIterator<Item = OsString>) -> Result<T, Ended> {
    let mut found = matches(program, T::command(), arguments)?;
    T::from_arg_matches_mut(&mut found).map_err(|error| Ended::Wrong(wrong::line(&error, &T::command(), &[])))
}

/// The same as clap has it, of a command that no struct describes.
///
/// # Errors
/// Help was requested, or the arguments are wrong.
pub fn matches(
    program: &str,
    command: Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<ArgMatches, Ended> {
    let words: Vec<OsString> = std::iter::once(program.into()).chain(arguments).collect();
    let mut command = prepared(command);
    command.try_get_matches_from_mut(&words).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => Ended::Text(help::text(program, &mut command, words.get(1))),
        ErrorKind::DisplayVersion => {
            let name = command.get_display_name().unwrap_or(program);
            Ended::Text(format!("{name} {}\n", command.get_version().unwrap_or_default()))
        }
        _ => Ended::Wrong(wrong::line(&error, &command, &words)),
    })
}

/// Runs a verb with its options, or prints its help or what is wrong; the exit status.
pub fn run<T: Parser>(
    program: &str,
    arguments: impl IntoIterator<Item = OsString>,
    verb: impl FnOnce(T) -> Result<u8, Failed>,
) -> u8 {
    read(program, arguments)
        .map_or_else(|ended| end(program, ended), |options| answer(program, verb(options)))
}

/// Prints help to standard output, or what is wrong to standard error; the exit status.
pub fn end(program: &str, ended: Ended) -> u8 {
    match ended {
        Ended::Text(text) => {
            print!("{text}");
            0
        }
        Ended::Wrong(line) => answer(program, Err(usage(program, line))),
    }
}

/// A usage error with the advice to read the help.
pub fn usage(program: &str, what: impl Display) -> Failed {
    (format!("{what}; see {program} --help"), USAGE)
}

/// Reports an error; the exit status.
pub fn answer(program: &str, done: Result<u8, Failed>) -> u8 {
    done.unwrap_or_else(|(line, code)| {
        complain!("{program}: {line}");
        code
    })
}

fn prepared(command: Command) -> Command {
    command
        .args_override_self(true)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .arg_required_else_help(false)
        .mut_args(|arg| {
            let with_value = arg.get_action().takes_values() && !arg.is_positional();
            if with_value { arg.allow_hyphen_values(true) } else { arg }
        })
        .arg(Arg::new("help").short('h').long("help").action(ArgAction::Help))
        .mut_subcommands(prepared)
}

#[cfg(test)]
mod tests;
