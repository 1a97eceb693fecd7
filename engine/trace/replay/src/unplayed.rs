//! I/O of the program that a replay leaves out: calls missing from its script, and calls that could not be played.

use etude_clock::seconds;
use etude_script::Dropped;
use serde::Serialize;

use crate::roll::Head;

/// Sums and shares of what the program read and wrote; times in seconds.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Unplayed {
    pub bytes: u64,
    pub bytes_share: f64,
    /// Time within reads, writes, and calls that hand requests over or wait for them.
    pub time_s: f64,
    /// None where it is not known how long calls took.
    pub time_share: Option<f64>,
    /// Transfers whose bytes are not recorded, and their share of all transfers.
    pub requests: u64,
    pub requests_share: f64,
    /// All that the script has not, also calls that move no data.
    pub dropped: Vec<Kind>,
}

/// Calls of one name that are not in the script, for one reason.
#[derive(Debug, PartialEq, Serialize)]
pub struct Kind {
    pub call: String,
    pub why: String,
    pub calls: u64,
    pub bytes: u64,
    pub requests: u64,
    pub time_s: f64,
    /// Whether they moved data, or may have.
    pub moves: bool,
}

impl Unplayed {
    /// Calls that moved data and are not in the script, the largest first.
    pub fn transfers(&self) -> Vec<&Kind> {
        let mut found: Vec<&Kind> = self.dropped.iter().filter(|kind| kind.moves && kind.calls > 0).collect();
        found.sort_by(|a, b| {
            (b.bytes, b.requests).cmp(&(a.bytes, a.requests)).then(b.time_s.total_cmp(&a.time_s))
        });
        found
    }
}

/// The I/O that a replay of the roll leaves out, where it `skipped` so much (bytes, and time in ns) and played
/// `transfers` calls that move data.
pub fn unplayed(head: &Head, skipped: (u64, u64), transfers: u64) -> Unplayed {
    let moving = || head.dropped.iter().filter(|dropped| dropped.moves());
    let sum = |of: fn(&Dropped) -> u64| moving().map(of).fold(0, u64::saturating_add);
    let (bytes, ns, requests) = (sum(|each| each.bytes), sum(|each| each.ns), sum(|each| each.requests));
    let original = &head.original;
    let all_bytes = original.read_bytes as f64 + original.written_bytes as f64 + bytes as f64;
    let all_s = original.read_s + original.write_s + original.requests_s + seconds(ns);
    let (bytes, time_s) = (bytes.saturating_add(skipped.0), seconds(ns.saturating_add(skipped.1)));
    let share = |part: f64, all: f64| if all > 0.0 { (part / all).min(1.0) } else { 0.0 };
    Unplayed {
        bytes,
        bytes_share: share(bytes as f64, all_bytes),
        time_s,
        time_share: original.timed.then(|| share(time_s, all_s)),
        requests,
        requests_share: share(requests as f64, requests as f64 + transfers as f64),
        dropped: head.dropped.iter().map(kind).collect(),
    }
}

fn kind(dropped: &Dropped) -> Kind {
    let (call, why, moves) = (dropped.call.clone(), dropped.why.clone(), dropped.moves());
    let Dropped { calls, bytes, requests, .. } = *dropped;
    Kind { call, why, calls, bytes, requests, time_s: seconds(dropped.ns), moves }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roll::Original;

    fn head(read_bytes: u64, read_s: f64, dropped: Vec<Dropped>) -> Head {
        Head {
            original: Original { read_bytes, read_s, timed: true, ..Original::default() },
            dropped,
            ..Head::default()
        }
    }

    fn dropped(call: &str, bytes: u64, requests: u64, ns: u64) -> Dropped {
        Dropped { call: call.into(), why: "so".into(), calls: 1, bytes, requests, ns }
    }

    #[test]
    fn shares_are_those_of_all_that_the_program_moved() {
        let found = unplayed(&head(900, 0.003, vec![dropped("write", 100, 0, 1_000_000)]), (0, 0), 9);
        assert_eq!((found.bytes, found.bytes_share, found.requests_share), (100, 0.1, 0.0));
        assert_eq!((found.time_s, found.time_share), (0.001, Some(0.25)));
    }

    #[test]
    fn time_within_calls_about_requests_is_that_of_their_transfers() {
        let mut head = head(1000, 0.001, vec![dropped("write", 10, 0, 1_000_000)]);
        head.original.requests_s = 0.098;
        assert_eq!(unplayed(&head, (0, 0), 9).time_share, Some(0.01));
    }

    #[test]
    fn what_could_not_be_played_is_not_played() {
        let found = unplayed(&head(1000, 0.004, vec![]), (500, 1_000_000), 3);
        assert_eq!((found.bytes_share, found.time_share), (0.5, Some(0.25)));
    }

    #[test]
    fn requests_of_unknown_size_count_beside_transfers() {
        let found = unplayed(&head(0, 0.0, vec![dropped("io_uring_enter", 0, 30, 10)]), (0, 0), 10);
        assert_eq!((found.bytes, found.requests, found.requests_share), (0, 30, 0.75));
    }

    #[test]
    fn calls_that_move_nothing_are_named_and_do_not_count() {
        let found = unplayed(&head(10, 0.001, vec![dropped("ioctl", 0, 0, 9_000_000)]), (0, 0), 1);
        assert_eq!((found.time_share, found.dropped.len(), found.transfers().len()), (Some(0.0), 1, 0));
        let nothing = Unplayed { time_share: Some(0.0), ..Unplayed::default() };
        assert_eq!(unplayed(&head(0, 0.0, vec![]), (0, 0), 0), nothing);
        assert_eq!(unplayed(&Head::default(), (1, 1), 0).time_share, None);
    }
}
