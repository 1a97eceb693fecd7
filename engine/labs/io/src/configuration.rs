//! What is told of a run beside its samples.

use etude_micro::machine;
use etude_micro::report::{Container, Style};
use serde_json::{Value, json};

use crate::options::Options;

/// The containers that the style prints.
pub fn wanted(options: &Options, cooled_by: Option<&'static str>) -> Vec<Container> {
    match options.style {
        Style::Quiet | Style::Rates => Vec::new(),
        Style::Verbose => vec![benchmark(options, cooled_by)],
        Style::Json => all(options, cooled_by),
    }
}

/// The machine, the system, and what was asked for.
pub fn all(options: &Options, cooled_by: Option<&'static str>) -> Vec<Container> {
    vec![machine::hardware(), machine::system(Some(&options.path)), benchmark(options, cooled_by)]
}

/// What was asked for: first what the lab's program told, sizes in bytes.
pub fn benchmark(options: &Options, cooled_by: Option<&'static str>) -> Container {
    let order = if options.shuffle.is_some() { "random" } else { "sequential" };
    let members = vec![
        ("buffersize", json!(options.blocks.size)),
        ("totalsize", json!(options.blocks.total())),
        ("blockcount", json!(options.blocks.count())),
        ("operation", json!(options.operation.word())),
        ("path", json!(options.path.to_string_lossy())),
        ("iterations", json!(options.iterations)),
        ("method", json!(options.method.word(options.operation))),
        ("order", json!(order)),
        ("seed", json!(options.shuffle)),
        ("direct", json!(options.direct)),
        ("fsync", json!(options.sync)),
        ("bare", json!(options.bare)),
        ("touch", json!(options.touch)),
        ("huge", options.huge.map_or(Value::Null, |huge| json!(if huge { "on" } else { "off" }))),
        ("cpu", json!(options.cpu)),
        ("cool", json!(options.cool.word())),
        ("cooled_by", json!(cooled_by)),
        ("counters", json!(options.counters)),
    ];
    Container { name: "benchmark_configuration", members }
}
