//! The layout of help: a summary, usage, options with their headings, and notes.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};

/// Lines are no longer than this.
const WIDTH: usize = 120;
/// Text begins here, or further left where all options are short.
const COLUMN: usize = 24;

/// The help of a command, or of the one below it that `word` names.
pub fn text(program: &str, command: &mut Command, word: Option<&OsString>) -> String {
    command.build();
    match word.and_then(|word| word.to_str()).and_then(|word| command.find_subcommand(word)) {
        Some(below) => of(&format!("{program} {}", below.get_name()), below),
        None => of(program, command),
    }
}

fn of(program: &str, command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{}\n\n", filled(&format!("{}.", about.trim_end_matches('.')), 0, 0));
    let usages = usages(program, command);
    for (index, usage) in usages.iter().enumerate() {
        let _ = writeln!(text, "{}{usage}", if index == 0 { "usage: " } else { "       " });
    }
    let verbs: Vec<&Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    let entries = verbs.iter().map(|verb| (format!("  {}", verb.get_name()), said(verb.get_about())));
    let entries: Vec<_> = entries.collect();
    if !entries.is_empty() {
        let _ = write!(text, "\n{}", aligned(&entries));
    }
    text += &options(command, |_| true);
    for verb in verbs {
        let below = options(verb, |arg| !matches!(arg.get_action(), ArgAction::Help));
        if !below.is_empty() {
            let _ = write!(text, "\n{}:{below}", verb.get_name());
        }
    }
    for line in command.get_after_help().map(ToString::to_string).unwrap_or_default().lines() {
        let _ = write!(text, "\n{}", filled(line, 0, 0));
    }
    text.trim_end().to_owned() + "\n"
}

/// The command lines that are shown: those of the command, then those of the ones below it.
fn usages(program: &str, command: &Command) -> Vec<String> {
    let own = command.clone().render_usage().to_string();
    let below = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let below = below.flat_map(|verb| usages(&format!("{program} {}", verb.get_name()), verb));
    let own: Vec<String> = match own.strip_prefix("Usage: ") {
        Some(written) => written.lines().map(|line| format!("{program} {line}")).collect(),
        None if command.is_subcommand_required_set() => Vec::new(),
        None => {
            let help_alone = command.get_opts().next().is_none()
                && !command.get_arguments().any(|arg| matches!(arg.get_action(), ArgAction::SetTrue));
            let options = if help_alone { "" } else { " [options]" };
            vec![format!("{program}{options}{}", positionals(command))]
        }
    };
    let one_for_all = command.is_subcommand_required_set() && !own.is_empty();
    if one_for_all { own } else { own.into_iter().chain(below).collect() }
}

fn positionals(command: &Command) -> String {
    let shown = command.get_positionals().filter(|arg| !arg.is_hide_set()).map(|arg| {
        let many = arg.get_num_args().is_some_and(|count| count.max_values() > 1);
        let name = format!("{}{}", names(arg), if many { " ..." } else { "" });
        if arg.is_required_set() { format!(" {name}") } else { format!(" [{name}]") }
    });
    shown.collect()
}

/// Those options of a command below their headings.
fn options(command: &Command, which: impl Fn(&Arg) -> bool) -> String {
    let mut text = String::new();
    let shown =
        |arg: &&Arg| which(arg) && !arg.is_hide_set() && (!arg.is_positional() || arg.get_help().is_some());
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in command.get_arguments().filter(shown) {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        let under = command.get_arguments().filter(shown).filter(|arg| arg.get_help_heading() == heading);
        let entries: Vec<_> = under.map(entry).collect();
        if !entries.is_empty() {
            let heading = heading.map_or(String::new(), |heading| format!("{heading}\n"));
            let _ = write!(text, "\n{heading}{}", aligned(&entries));
        }
    }
    text
}

/// An option with its values, and what it does.
fn entry(arg: &Arg) -> (String, String) {
    let names = if arg.get_action().takes_values() { names(arg) } else { String::new() };
    let option = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("  -{short}, --{long} {names}"),
        (Some(short), None) => format!("  -{short} {names}"),
        (None, Some(long)) => format!("      --{long} {names}"),
        (None, None) => format!("  {names}"),
    };
    let help = match arg.get_action() {
        ArgAction::Help | ArgAction::Version => String::new(),
        _ => said(arg.get_help()),
    };
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let named = !arg.get_action().takes_values() || default.is_empty() || help.contains("(default");
    let help = if named { help } else { format!("{help} (default {})", default.join(" ")) };
    (option.trim_end().to_owned(), help)
}

/// A text that goes on a line: `a file`, where its comment in the code has `A file`.
fn said(text: Option<&StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    let mut rest = text.chars();
    match (rest.next(), rest.next()) {
        (Some('A'), Some(' ')) => format!("a{}", &text[1..]),
        (Some(first), Some(second)) if second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), &text[first.len_utf8()..])
        }
        _ => text,
    }
}

fn names(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
    names.collect::<Vec<_>>().join(" ")
}

fn aligned(entries: &[(String, String)]) -> String {
    let longest = entries.iter().map(|(option, _)| option.chars().count() + 2).max().unwrap_or_default();
    let column = longest.min(COLUMN);
    let lines = entries.iter().map(|(option, said)| {
        let wide = option.chars().count();
        let gap =
            if wide + 2 <= column { " ".repeat(column - wide) } else { format!("\n{}", " ".repeat(column)) };
        format!("{option}{gap}{}", filled(said, column, column)).trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// A text in lines, of which the first begins in column `first`, and further ones are indented.
fn filled(text: &str, first: usize, indent: usize) -> String {
    let (mut lines, mut used, mut begins) = (String::new(), first, true);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let wide = word.chars().count();
        if !begins && used + 1 + wide > WIDTH {
            let _ = write!(lines, "\n{}", " ".repeat(indent));
            (used, begins) = (indent, true);
        }
        if !begins {
            lines.push(' ');
            used += 1;
        }
        lines += word;
        (used, begins) = (used + wide, false);
    }
    lines
}
