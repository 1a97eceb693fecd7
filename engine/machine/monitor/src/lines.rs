//! The lines of the file (docs/howto/monitor.md).

use std::io::Write;

use etude_clock::seconds;
use serde_json::json;

use crate::messages::Message;
use crate::source::{Absent, Column};
use crate::top::{Entry, Listed};

/// What the head says.
pub struct Head<'a> {
    pub start: &'a str,
    pub start_ns: u64,
    pub boot_id: Option<&'a str>,
    pub every_ns: u64,
    pub top: usize,
    pub cpus: &'a [u32],
}

pub fn head(out: &mut Vec<u8>, head: &Head) {
    // In this order, as a person reads it.
    let start = json!(head.start);
    let (boot, cpus) = (json!(head.boot_id), json!(head.cpus));
    let (every_s, pid) = (seconds(head.every_ns), std::process::id());
    let _ = writeln!(
        out,
        "{{\"format\":\"etude-monitor\",\"version\":1,\"start\":{start},\"start_ns\":{},\"boot_id\":{boot},\
         \"every_s\":{every_s:?},\"top\":{},\"cpus\":{cpus},\"pid\":{pid}}}",
        head.start_ns, head.top
    );
}

/// `cpus`: where they are others than those of the head.
pub fn columns(out: &mut Vec<u8>, columns: &[Column], absent: &Absent, cpus: Option<&[u32]>) {
    out.extend(b"{\"columns\":[");
    for (at, column) in columns.iter().enumerate() {
        let (name, unit, kind) = (json!(column.name), json!(column.unit), column.kind.name());
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{{\"name\":{name},\"unit\":{unit},\"kind\":\"{kind}\"}}");
    }
    let absent: serde_json::Map<_, _> =
        absent.iter().map(|(name, why)| (name.clone(), why.as_str().into())).collect();
    let _ = write!(out, "],\"absent\":{}", json!(absent));
    if let Some(cpus) = cpus {
        let _ = write!(out, ",\"cpus\":{}", json!(cpus));
    }
    out.extend(b"}\n");
}

/// `suspended_ns`: for how long the machine slept within the interval.
pub fn sample(out: &mut Vec<u8>, ns: u64, suspended_ns: u64, values: &[Option<f64>], top: Option<&Listed>) {
    let _ = write!(out, "{{\"ns\":{ns}");
    if suspended_ns > 0 {
        let _ = write!(out, ",\"suspended\":{}", Seconds(suspended_ns.cast_signed()));
    }
    out.extend(b",\"v\":[");
    for (at, value) in values.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = match value {
            Some(value) => write!(out, "{comma}{value}"),
            None => write!(out, "{comma}null"),
        };
    }
    out.push(b']');
    if let Some(top) = top {
        out.extend(b",\"top\":[");
        for (at, one) in top.entries.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            entry(out, one);
        }
        let _ = write!(out, "],\"processes\":{},\"unseen\":", top.processes);
        let _ = match top.unseen_ns {
            Some(unseen_ns) => write!(out, "{}", Seconds(unseen_ns)),
            None => write!(out, "null"),
        };
    }
    out.extend(b"}\n");
}

fn entry(out: &mut Vec<u8>, one: &Entry) {
    let _ = write!(out, "{{\"pid\":{},\"name\":", one.pid);
    text(out, &one.name);
    let _ = write!(out, ",\"start\":{},\"cpu\":{}", one.start, Seconds(one.cpu_ns));
    if one.children_ns > 0 {
        let _ = write!(out, ",\"children\":{}", Seconds(one.children_ns));
    }
    let _ = write!(out, ",\"parent\":{},\"rss\":{}", one.parent, one.rss_bytes);
    let _ = match one.io {
        Some((read, written)) => write!(out, ",\"read\":{read},\"written\":{written}"),
        None => write!(out, ",\"read\":null,\"written\":null"),
    };
    if let Some(cgroup) = &one.cgroup {
        out.extend(b",\"cgroup\":");
        text(out, cgroup);
    }
    out.push(b'}');
}

pub fn message(out: &mut Vec<u8>, ns: u64, message: &Message) {
    let _ = write!(out, "{{\"ns\":{ns},\"level\":{},\"kernel\":", message.level);
    text(out, &message.text);
    if message.facility != 0 {
        let _ = write!(out, ",\"facility\":{}", message.facility);
    }
    out.extend(b"}\n");
}

pub fn dropped(out: &mut Vec<u8>, ns: u64, count: u64) {
    let said = format!("{count} further messages were not kept");
    let _ = writeln!(out, "{{\"ns\":{ns},\"level\":4,\"kernel\":{},\"dropped\":{count}}}", json!(said));
}

/// What the monitor itself cost, from the first reading on.
pub struct Cost {
    pub cpu_ns: u64,
    pub elapsed_ns: u64,
    pub wall_ns_median: Option<u64>,
    pub wall_ns_max: Option<u64>,
}

pub fn end(out: &mut Vec<u8>, ns: u64, samples: u64, cost: &Cost) {
    let cpu_s = seconds(cost.cpu_ns);
    let share = (cost.elapsed_ns > 0).then(|| cost.cpu_ns as f64 / cost.elapsed_ns as f64);
    let _ = writeln!(
        out,
        "{{\"end\":true,\"ns\":{ns},\"samples\":{samples},\"cost\":{{\"cpu_s\":{cpu_s},\"wall_ns_median\":{},\
         \"wall_ns_max\":{},\"share_of_a_core\":{}}}}}",
        json!(cost.wall_ns_median),
        json!(cost.wall_ns_max),
        json!(share)
    );
}

fn text(out: &mut Vec<u8>, text: &str) {
    // A text into memory: that cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Nanoseconds as seconds, to the microsecond.
struct Seconds(i64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        ((self.0 / 1000) as f64 / 1e6).fmt(formatter)
    }
}
