//! The output of a replay while it plays: a line of JSON a window (docs/reference/formats.md, "Windows").
//!
//! A window is the difference of what stands in shared memory at its end and at its beginning. The process that waits for
//! the replay takes it; threads that play know nothing of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use etude_calls::Call;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use crate::shared::{Shared, Sums};

/// Of what is written. What is measured is within 3 % (`shared.rs`), and shall not lose more.
const DIGITS: u8 = 3;
/// The last bin ends here.
const HIGHEST_NS: u64 = 1 << 41;

/// The file that whoever runs this wants windows in.
pub fn asked_for() -> Option<PathBuf> {
    std::env::var_os("ETUDE_WINDOWS").filter(|path| !path.is_empty()).map(PathBuf::from)
}

#[derive(Serialize)]
struct Window {
    duration_s: f64,
    #[serde(flatten)]
    all: Answers,
    by: BTreeMap<&'static str, Answers>,
}

#[derive(Serialize)]
struct Answers {
    completed: u64,
    /// Those with another result than the original's. Their times count, too.
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<String>,
}

/// What has been told of the calls of one name.
#[derive(Default)]
struct Told {
    times: Sums,
    mismatches: u64,
}

pub struct Windows {
    path: PathBuf,
    length_ns: i64,
    /// When the window under way began; None before the replay has.
    began_ns: Option<i64>,
    due_ns: i64,
    told: BTreeMap<&'static str, Told>,
    coder: Coder,
    wrong: Option<String>,
}

impl Windows {
    /// # Errors
    /// The file cannot be written.
    pub fn new(path: PathBuf, length_s: f64) -> Result<Windows, String> {
        appending(&path).map_err(|error| unwritten(&path, &error))?;
        Ok(Windows {
            path,
            length_ns: (length_s * 1e9) as i64,
            began_ns: None,
            due_ns: 0,
            told: BTreeMap::new(),
            coder: Coder::new(),
            wrong: None,
        })
    }

    /// Writes a window if one is over, or if the replay is.
    pub fn watch(&mut self, shared: &Shared, now_ns: i64, ended: bool) {
        let first = shared.all().began_ns.load(Ordering::Relaxed);
        if first == 0 || self.wrong.is_some() {
            return;
        }
        let began = *self.began_ns.get_or_insert_with(|| {
            self.due_ns = first + self.length_ns;
            first
        });
        let now = match shared.all().ended_ns.load(Ordering::Relaxed) {
            last if ended && last > 0 => last,
            _ => now_ns,
        };
        if now < self.due_ns && !ended {
            return;
        }
        let window = self.window(shared, (now - began).max(0));
        let more = window.duration_s > 0.0 || !window.by.is_empty();
        if more && let Err(error) = self.write(&window) {
            self.wrong = Some(unwritten(&self.path, &error));
        }
        self.began_ns = Some(now);
        self.due_ns += ((now - self.due_ns).max(0) / self.length_ns + 1) * self.length_ns;
    }

    /// # Errors
    /// A window could not be written.
    pub fn end(self) -> Result<(), String> {
        self.wrong.map_or(Ok(()), Err)
    }

    fn window(&mut self, shared: &Shared, took_ns: i64) -> Window {
        let mut by = BTreeMap::new();
        self.coder.whole.reset();
        for call in Call::all() {
            let told = self.told.entry(call.name()).or_default();
            if let Some(answers) = newly(shared, call, told, &mut self.coder) {
                by.insert(call.name(), answers);
            }
        }
        let sum = |of: fn(&Answers) -> u64| by.values().map(of).sum();
        let latency = (!by.is_empty()).then(|| self.coder.whole_text());
        let all = Answers { completed: sum(|of| of.completed), failed: sum(|of| of.failed), latency };
        Window { duration_s: took_ns as f64 / 1e9, all, by }
    }

    fn write(&self, window: &Window) -> io::Result<()> {
        let line = serde_json::to_string(window)? + "\n";
        appending(&self.path)?.write_all(line.as_bytes())
    }
}

/// Opened for each line: what plays shall not inherit it.
fn appending(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}; windows cannot be written there", path.display())
}

/// The calls of one name since they were told last; None where there are none.
fn newly(shared: &Shared, call: Call, told: &mut Told, coder: &mut Coder) -> Option<Answers> {
    let of = || shared.lanes().map(|lane| lane.of(call));
    // A player counts a call first and its time next: where both sums are the same, there is nothing new.
    if of().map(|calls| calls.count.load(Ordering::Relaxed)).sum::<u64>() == told.times.count() {
        return None;
    }
    // It counts another result last, so what is seen of those here belongs to times that are seen below.
    let mismatches: u64 = of().map(|calls| calls.mismatches.load(Ordering::Acquire)).sum();
    let mut times = Sums::default();
    shared.lanes().for_each(|lane| lane.add_times(call, &mut times));
    let (completed, latency) = coder.text(times.since(&told.times));
    let failed = (mismatches - told.mismatches).min(completed);
    *told = Told { times, mismatches: told.mismatches + failed };
    (completed > 0).then_some(Answers { completed: completed - failed, failed, latency: Some(latency) })
}

/// Histograms as text: one of a kind of call, and one of all.
struct Coder {
    one: Histogram<u64>,
    whole: Histogram<u64>,
    serializer: V2DeflateSerializer,
}

impl Coder {
    fn new() -> Coder {
        let empty = Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).expect("good bounds");
        Coder { one: empty.clone(), whole: empty, serializer: V2DeflateSerializer::new() }
    }

    /// How many these are, and their histogram. They are added to the whole.
    fn text(&mut self, times: impl Iterator<Item = (u64, u64)>) -> (u64, String) {
        self.one.reset();
        for (ns, count) in times {
            self.one.saturating_record_n(ns, count);
        }
        self.whole.add(&self.one).expect("of the same bounds");
        (self.one.len(), encoded(&mut self.serializer, &self.one))
    }

    fn whole_text(&mut self) -> String {
        encoded(&mut self.serializer, &self.whole)
    }
}

fn encoded(serializer: &mut V2DeflateSerializer, histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    serializer.serialize(histogram, &mut bytes).expect("memory takes it");
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// A file that goes away with its end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            Place(std::env::temp_dir().join(format!("etude-windows-{}-{name}", std::process::id())))
        }

        fn lines(&self) -> Vec<Value> {
            let text = std::fs::read_to_string(&self.0).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn begun(lanes: usize) -> Shared {
        let shared = Shared::new(lanes).unwrap();
        shared.all().began_ns.store(SECOND, Ordering::Relaxed);
        shared
    }

    fn made(shared: &Shared, lane: usize, call: &str, ns: u64, same: bool) {
        let (lane, call) = (shared.lane(lane), Call::named(call).unwrap());
        lane.count(call, ns);
        lane.of(call).mismatches.fetch_add(u64::from(!same), Ordering::Relaxed);
    }

    fn held(of: &Value) -> Histogram<u64> {
        let bytes = STANDARD.decode(of["latency"].as_str().unwrap()).unwrap();
        Deserializer::new().deserialize(&mut &bytes[..]).unwrap()
    }

    fn answered(of: &Value) -> u64 {
        of["completed"].as_u64().unwrap() + of["failed"].as_u64().unwrap()
    }

    #[test]
    fn a_window_is_written_when_it_is_over_and_the_last_when_the_replay_is() {
        let (place, shared) = (Place::new("over"), begun(1));
        let mut windows = Windows::new(place.0.clone(), 1.0).unwrap();
        made(&shared, 0, "read", 1000, true);
        windows.watch(&shared, 2 * SECOND - 1, false);
        assert!(place.lines().is_empty());
        windows.watch(&shared, 2 * SECOND + SECOND / 10, false);
        made(&shared, 0, "openat", 2000, false);
        windows.watch(&shared, 3 * SECOND - 1, false);
        windows.watch(&shared, 5 * SECOND + SECOND / 2, false);
        windows.watch(&shared, 6 * SECOND - 1, false);
        shared.all().ended_ns.store(6 * SECOND - SECOND / 4, Ordering::Relaxed);
        windows.watch(&shared, 7 * SECOND, true);
        windows.end().unwrap();
        let lines = place.lines();
        let of = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
        assert_eq!(of("duration_s"), [1.1, 3.4, 0.25]);
        assert_eq!(
            (of("completed"), of("failed")),
            (vec![1.into(), 0.into(), 0.into()], vec![0.into(), 1.into(), 0.into()])
        );
        assert_eq!(lines[2], serde_json::json!({"duration_s": 0.25, "completed": 0, "failed": 0, "by": {}}));
    }

    #[test]
    fn a_file_that_takes_no_more_is_told_at_the_end() {
        let shared = begun(1);
        let mut windows = Windows::new("/dev/full".into(), 1.0).unwrap();
        windows.watch(&shared, 3 * SECOND, false);
        let told = windows.end().unwrap_err();
        assert!(told.starts_with("/dev/full: No space left on device"), "{told}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

        #[test]
        fn windows_together_hold_every_call_once(
            calls in prop::collection::vec((0..3_usize, 0..2_usize, 0..1_u64 << 42, any::<bool>(), any::<bool>()), 0..60)
        ) {
            let (place, shared) = (Place::new("once"), begun(3));
            let _ = std::fs::remove_file(&place.0);
            let mut windows = Windows::new(place.0.clone(), 1.0).unwrap();
            let mut now = SECOND;
            for (lane, call, ns, same, over) in &calls {
                made(&shared, *lane, ["read", "openat"][*call], *ns, *same);
                now += i64::from(*over) * SECOND;
                windows.watch(&shared, now, false);
            }
            windows.watch(&shared, now + 1, true);
            windows.end().unwrap();
            let lines = place.lines();
            let sum = |of: fn(&Value) -> u64| lines.iter().map(of).sum::<u64>();
            prop_assert_eq!(sum(answered), calls.len() as u64);
            prop_assert_eq!(sum(|line| line["failed"].as_u64().unwrap()), calls.iter().filter(|call| !call.3).count() as u64);
            for line in &lines {
                let by = line["by"].as_object().unwrap();
                prop_assert_eq!(by.values().map(answered).sum::<u64>(), answered(line));
                if by.is_empty() {
                    continue;
                }
                let mut together = held(line);
                prop_assert_eq!(together.len(), answered(line));
                for of in by.values() {
                    prop_assert_eq!(held(of).len(), answered(of));
                    together.subtract(held(of)).unwrap();
                }
                prop_assert!(together.is_empty());
            }
        }

        #[test]
        fn a_time_is_told_within_three_percent(ns in 0..1_u64 << 41) {
            let (place, shared) = (Place::new("told"), begun(1));
            let _ = std::fs::remove_file(&place.0);
            let mut windows = Windows::new(place.0.clone(), 1.0).unwrap();
            made(&shared, 0, "read", ns, true);
            windows.watch(&shared, 2 * SECOND, true);
            let found = held(&place.lines()[0]["by"]["read"]).max() as f64;
            prop_assert!((found - ns as f64).abs() <= 0.03 * ns as f64 + 1.0, "{} for {}", found, ns);
        }
    }
}
