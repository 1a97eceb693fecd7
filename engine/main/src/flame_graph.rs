//! `etude-engine flame-graph`: stacks with their times as an SVG that zooms and searches.

use std::ffi::OsString;
use std::io::{self, Read};

use clap::Parser;
use inferno::flamegraph::{self, Options as Look, TextTruncateDirection};

/// Draw stacks with their times as a flame graph
#[derive(Parser)]
#[command(
    after_help = "Standard input has a stack a line, sorted by its functions: outermost first with a semicolon between, then \
                  its time twice (a single number behind a name such as `f 5` would be ambiguous). Standard output is an SVG."
)]
struct Options {
    /// Omit functions below this percentage of the whole
    #[arg(long, value_name = "PERCENT", default_value_t = 0.05)]
    least: f64,
}

/// Runs the verb; its exit status.
pub fn flame_graph(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine flame-graph", arguments, |options: Options| {
        draw(options.least).map(|()| 0).map_err(|error| (error.to_string(), 5))
    })
}

fn draw(least: f64) -> io::Result<()> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    let mut look = Look::default();
    look.min_width = least;
    look.text_truncate_direction = TextTruncateDirection::Right;
    // The library sorts lines as texts, where `f(int)` comes between `f` and `f;g`: it would draw f twice. A chart keeps
    // the order, from the last line to the first.
    look.flame_chart = true;
    flamegraph::from_lines(&mut look, text.lines().rev(), io::stdout().lock())
}
