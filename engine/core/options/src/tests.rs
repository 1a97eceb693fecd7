use clap::{Args, Subcommand, ValueEnum};
use proptest::prelude::*;

use super::*;

/// Plays something
#[derive(Debug, Parser, PartialEq)]
#[command(after_help = "More: docs/x.md.")]
struct Options {
    /// Where it goes
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Option<String>,
    /// How fast
    #[arg(long, value_name = "R", conflicts_with = "clients", value_parser = values::whole::<u64>(1..=9))]
    rate: Option<u64>,
    /// How many
    #[arg(long, value_name = "N")]
    clients: Option<u64>,
    /// So long
    #[arg(
        long,
        value_name = "S",
        requires = "clients",
        conflicts_with = "rate",
        help_heading = "of clients"
    )]
    think: Option<String>,
    /// The way
    #[arg(long, value_name = "WAY", default_value = "slow")]
    way: Way,
    /// Nothing is printed
    #[arg(short, long)]
    quiet: bool,
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Way {
    Slow,
    Quick,
    Direct,
}

/// Several verbs
#[derive(Debug, Parser)]
struct Verbs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Looks at it
    Look(Look),
    /// Writes it
    Write,
}

#[derive(Debug, Args)]
struct Look {
    /// The listing
    #[arg(long, value_name = "N")]
    also: Vec<u64>,
    listing: OsString,
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn good(line: &str) -> Options {
    read("p", words(line)).unwrap_or_else(|ended| panic!("{line}: {ended:?}"))
}

fn wrong<T: Parser + std::fmt::Debug>(line: &str) -> String {
    match read::<T>("p", words(line)) {
        Err(Ended::Wrong(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

fn help<T: Parser + std::fmt::Debug>(line: &str) -> String {
    match read::<T>("p", words(line)) {
        Err(Ended::Text(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn an_option_that_is_given_again_replaces_its_value_which_may_begin_with_a_hyphen() {
    let found = good("-o a -o -b -q -q --way quick");
    assert_eq!((found.output.as_deref(), found.way, found.quiet), (Some("-b"), Way::Quick, true));
    assert_eq!(good("-o=x").output.as_deref(), Some("x"));
}

#[test]
fn what_follows_a_command_is_its_own() {
    let found = good("-o a ls -q --rate 3 -- x");
    assert_eq!((found.command, found.quiet), (words("ls -q --rate 3 -- x"), false));
    assert_eq!(good("-o a -- -q x").command, words("-q x"));
}

#[test]
fn what_is_wrong_is_one_line_with_the_name_and_what_was_expected() {
    for (line, expected) in [
        ("", "--output is missing"),
        ("-o", "--output needs a value"),
        ("-o a --rate 0", "--rate \"0\": expected a whole number, 1 to 9"),
        ("-o a --rate -1", "--rate \"-1\": expected a whole number, 1 to 9"),
        ("-o a --way far", "--way \"far\": expected slow, quick or direct"),
        ("-o a --quiet=3", "--quiet takes no value"),
        ("-o a --fast", "there is no option --fast"),
        ("-o a -x", "there is no option -x"),
        ("-o a --rate 3 --clients 2", "--rate and --clients exclude each other: leave one out"),
        ("-o a --think 3", "--think needs --clients"),
    ] {
        assert_eq!(wrong::<Options>(line), expected, "{line}");
    }
    for (line, expected) in [
        ("", "expected look or write"),
        ("read", "\"read\": expected look or write"),
        ("look", "look: LISTING is missing"),
        ("look a b", "look: one argument too many: \"b\""),
        ("write --also 3", "write: there is no option --also"),
    ] {
        assert_eq!(wrong::<Verbs>(line), expected, "{line}");
    }
}

#[test]
fn help_has_each_option_below_its_heading() {
    let text = help::<Options>("--help");
    assert_eq!(
        text,
        "\
Plays something.

usage: p [options] [COMMAND ...]

  -o, --output FILE  where it goes
      --rate R       how fast
      --clients N    how many
      --way WAY      the way (default slow)
  -q, --quiet        nothing is printed
  -h, --help

of clients
      --think S  so long

More: docs/x.md.
"
    );
    let text = help::<Verbs>("--help");
    assert_eq!(
        text,
        "Several verbs.\n\nusage: p look [options] LISTING\n       p write\n\n  look   looks at it\n  write  writes it\n\n  \
         -h, --help\n\nlook:\n      --also N  the listing\n"
    );
    let text = help::<Verbs>("look -h");
    assert!(text.starts_with("Looks at it.\n\nusage: p look [options] LISTING\n"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 16, ..ProptestConfig::default() })]

    #[test]
    fn any_words_are_read_or_refused_in_one_line(words in prop::collection::vec(
        "\\PC{0,6}|-{0,2}[a-z]{1,3}|--(output|rate|clients|think|way|quiet)(=\\PC{0,3})?|-[oqh]|look|write", 0..7
    )) {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let ends = [read::<Options>("p", words.clone()).err(), read::<Verbs>("p", words).err()];
        for ended in ends.into_iter().flatten() {
            if let Ended::Wrong(line) = ended {
                prop_assert!(!line.is_empty() && !line.contains('\n'), "{:?}", line);
            }
        }
    }
}
