use etude_calls::Call;
use etude_script::What;
use etude_trace::Event;
use proptest::prelude::*;

use super::*;

/// Calls stand within this of where they stood, ns: what is left out of gaps and durations does not add up.
const NEAR: u64 = 11_000;
/// Gaps alone are told to this.
const GAPS_NEAR: u64 = 1_000;

fn event(name: &str, arguments: [u64; 3], result: i64, start_ns: u64, duration_ns: u64) -> Event {
    let [a, b, c] = arguments;
    let call = Call::named(name).unwrap();
    Event { start_ns, duration_ns, call, result, arguments: [a, b, c, 0, 0, 0], texts: Default::default() }
}

/// Written as the only thread of a roll with one file of 5000 bytes, and read.
fn through(events: &[Event]) -> Vec<Event> {
    let (names, what) = (vec![b"f".to_vec()], What::File { bytes: 5000, allocated: None, seen: true });
    let needed = [Needed { path: b"f"[..].into(), what }];
    let calls = events.len() as u64;
    let head = Head { threads: vec![Stream { process: 0, calls }], calls, ..Head::default() };
    let rhythm = Rhythm::of(std::iter::once(events));
    let mut writer = Writer::new(Vec::new(), &head, &names, &needed, rhythm).unwrap();
    writer.marks(0, &[Mark { at: calls, gap_us: 0, what: Marked::End }]).unwrap();
    writer.calls(0, &mut events.to_vec()).unwrap();
    let roll = Roll::read(writer.finish().unwrap()).unwrap();
    let (mut reading, mut chunk, mut all) = (Reading::new(0), Vec::new(), Vec::new());
    while reading.more(&roll) {
        reading.read(&roll, &mut chunk).unwrap();
        all.append(&mut chunk);
    }
    all
}

/// Opens, reads of what is left and of more, closes, of a few descriptors.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let size = prop_oneof![0..6000_u64, Just(1000), 4998..5002_u64, Just(131_072), any::<u64>()];
    let call = prop_oneof![
        (0..4_i64).prop_map(|fd| ("openat", [u64::MAX - 99, 1, 0], fd)),
        (0..4_i64).prop_map(|fd| ("openat", [u64::MAX - 99, 1, 2], fd)),
        (0..4_u64, size, prop_oneof![0..6000_i64, -40..0_i64, any::<i64>()])
            .prop_map(|(fd, size, result)| ("read", [fd, 0, size], result)),
        (0..4_u64).prop_map(|fd| ("close", [fd, 0, 0], 0)),
    ];
    let time = || prop_oneof![0..5000_u64, 100_000..200_000_u64, Just(1 << 40)];
    proptest::collection::vec((call, time(), time()), 0..200).prop_map(|rows| {
        let mut end = 0;
        let event = |((name, arguments, result), gap, duration): ((&str, _, _), u64, u64)| {
            let event = event(name, arguments, result, end + gap, duration);
            end = event.end_ns();
            event
        };
        rows.into_iter().map(event).collect()
    })
}

proptest! {
    #[test]
    fn calls_are_read_as_they_were_and_times_nearly(events in any_events()) {
        let read = through(&events);
        prop_assert_eq!(read.len(), events.len());
        for (then, now) in events.iter().zip(&read) {
            prop_assert_eq!((then.call, then.arguments, then.result), (now.call, now.arguments, now.result));
            prop_assert!(then.start_ns.abs_diff(now.start_ns) <= NEAR, "{} {}", then.start_ns, now.start_ns);
            prop_assert!(then.end_ns().abs_diff(now.end_ns()) <= NEAR);
        }
        let computed = |events: &[Event]| -> u64 {
            events.last().map_or(0, Event::end_ns) - events.iter().map(|event| event.duration_ns).sum::<u64>()
        };
        prop_assert!(computed(&events).abs_diff(computed(&read)) <= GAPS_NEAR);
    }
}

#[test]
fn what_is_usual_costs_nothing_and_sums_stay_right() {
    let usual = |n: u64| event("lseek", [3, 0, 0], 0, n * 20_000, 3_000 + (n % 7) * 1_000);
    let events: Vec<Event> = (0..80_000).map(usual).collect();
    let (read, all) =
        (through(&events), |events: &[Event]| -> u64 { events.iter().map(|event| event.duration_ns).sum() });
    assert!(all(&read).abs_diff(all(&events)) <= 2 * NEAR, "{} {}", all(&read), all(&events));
    let last = |events: &[Event]| events.last().unwrap().start_ns;
    assert!(last(&read).abs_diff(last(&events)) <= NEAR);
}

#[test]
fn a_file_that_is_read_whole_is_foretold_from_its_size() {
    let bytes = |result: i64| {
        let one = |n: u64| {
            let start = n * 10_000;
            let rest = (5000 + result) as u64;
            [
                event("openat", [u64::MAX - 99, 1, 0], 3, start, 1000),
                event("read", [3, 0, 4096], 4096, start + 1000, 1000),
                event("read", [3, 0, 4096], (rest - 4096) as i64, start + 2000, 1000),
                event("close", [3, 0, 0], 0, start + 3000, 1000),
            ]
        };
        let mut events: Vec<Event> = (0..500).flat_map(one).collect();
        let mut so_far = Foretold::default();
        let needed =
            [Needed { path: b"f"[..].into(), what: What::File { bytes: 5000, allocated: None, seen: true } }];
        let sizes = Sizes::of(&needed, std::iter::once(&b"f"[..]));
        let rhythm = Rhythm::of(std::iter::once(&events[..]));
        events.iter_mut().for_each(|event| so_far.tell(event, &rhythm, &sizes));
        let short = |event: &&Event| event.call.name() == "read" && event.result != event.arguments[2] as i64;
        events.iter().filter(short).count()
    };
    assert_eq!(bytes(0), 0);
    assert_eq!(bytes(7), 500);
}
