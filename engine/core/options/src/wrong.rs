//! Errors of a command line as one line: what is wrong, what was expected, what to do.

use std::error::Error as _;
use std::ffi::OsString;

use clap::builder::OsStringValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};

/// The line of an error of `command` about `words`, which begin with the program's name.
pub fn line(error: &Error, command: &Command, words: &[OsString]) -> String {
    match words.get(1).and_then(|word| command.find_subcommand(word)) {
        Some(verb) => format!("{}: {}", verb.get_name(), of(error, verb, &words[1..])),
        None => of(error, command, words),
    }
}

fn of(error: &Error, command: &Command, words: &[OsString]) -> String {
    let names = texts(error, ContextKind::InvalidArg).iter().map(|shown| name(shown)).collect::<Vec<_>>();
    let first = names.first().map_or("", String::as_str);
    let value = texts(error, ContextKind::InvalidValue).pop().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if first.starts_with('-') => format!("there is no option {first}"),
        ErrorKind::UnknownArgument => format!("one argument too many: {first:?}"),
        ErrorKind::TooManyValues => format!("{first} takes no value"),
        ErrorKind::InvalidValue if value.is_empty() => format!("{first} needs a value"),
        ErrorKind::InvalidValue => {
            format!("{first} {value:?}: expected {}", any(&texts(error, ContextKind::ValidValue)))
        }
        ErrorKind::ValueValidation => {
            format!("{first} {}", error.source().map_or(value, ToString::to_string))
        }
        ErrorKind::ArgumentConflict if names.is_empty() => {
            format!(
                "one argument too many: {:?}",
                texts(error, ContextKind::InvalidSubcommand).pop().unwrap_or_default()
            )
        }
        ErrorKind::ArgumentConflict => match texts(error, ContextKind::PriorArg).first() {
            Some(other) => format!("{first} and {} exclude each other: leave one out", name(other)),
            None => format!("{first} excludes all other options: leave them out"),
        },
        ErrorKind::MissingRequiredArgument => missing(&names, command, words),
        ErrorKind::TooFewValues => format!("expected more of {first}"),
        ErrorKind::MissingSubcommand => format!("expected {}", any(&verbs(command))),
        ErrorKind::InvalidSubcommand => {
            let word = texts(error, ContextKind::InvalidSubcommand).pop().unwrap_or_default();
            format!("{word:?}: expected {}", any(&verbs(command)))
        }
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8".to_owned(),
        _ => error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}

/// `a, b or c`.
fn any(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [words @ .., last] => format!("{} or {last}", words.join(", ")),
    }
}

fn texts(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// `--output` of `--output <FILE>` or the group `<--output <FILE>>`, `FILE` of `<FILE>`, `--a or --b` of the group
/// `<--a <A>|--b <B>>`.
fn name(shown: &str) -> String {
    let group = shown.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    match group.filter(|group| group.starts_with('-') || group.contains('|')) {
        Some(group) => any(&group.split('|').map(name).collect::<Vec<_>>()),
        None if shown.starts_with('-') => {
            shown.split([' ', '[']).next().unwrap_or_default().trim_end_matches("...").to_owned()
        }
        None => shown.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).to_owned(),
    }
}

fn verbs(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect()
}

/// The missing options, and the option that needs them, where one does.
fn missing(names: &[String], command: &Command, words: &[OsString]) -> String {
    // As if any value would do: what an option needs does not depend on it.
    let command = command.clone().mut_args(|arg| match arg.get_action().takes_values() {
        true => arg.value_parser(OsStringValueParser::new()),
        false => arg,
    });
    let always = lacking(&command, &[]);
    let given = command.clone().ignore_errors(true).try_get_matches_from(words).unwrap_or_default();
    let alone = names.iter().filter(|name| !always.contains(name)).find_map(|name| {
        let needing = |arg: &&Arg| given_by(&given, arg) && lacking(&command, &example(arg)).contains(name);
        command.get_arguments().find(needing).map(|arg| format!("{} needs {name}", spelled(arg)))
    });
    alone.unwrap_or_else(|| match names {
        [name] => format!("{name} is missing"),
        [] => "an argument is missing".to_owned(),
        [names @ .., last] => format!("{} and {last} are missing", names.join(", ")),
    })
}

fn given_by(matches: &ArgMatches, arg: &Arg) -> bool {
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// A command line with this option alone.
fn example(arg: &Arg) -> Vec<OsString> {
    let value = arg.get_action().takes_values().then(|| "1".into());
    let option = (!arg.is_positional()).then(|| spelled(arg).into());
    option.into_iter().chain(value).collect()
}

/// The options that these words lack.
fn lacking(command: &Command, words: &[OsString]) -> Vec<String> {
    let words = std::iter::once(OsString::new()).chain(words.iter().cloned());
    match command.clone().try_get_matches_from(words) {
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            texts(&error, ContextKind::InvalidArg).iter().map(|shown| name(shown)).collect()
        }
        _ => Vec::new(),
    }
}

fn spelled(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => name(&arg.to_string()),
    }
}
