//! Scripts that become rolls and are read again, and rolls that are refused.

use proptest::prelude::*;

use super::*;
use crate::roll::Reading;

#[test]
fn a_roll_that_is_cut_short_or_altered_is_refused() {
    let whole = compiled(&one_file());
    for length in 0..whole.len() {
        assert!(Roll::read(whole[..length].to_vec()).is_err(), "{length}");
    }
    for at in 0..whole.len() {
        let mut altered = whole.clone();
        altered[at] ^= 0x20;
        // The reserved bytes of its beginning say nothing.
        assert!((12..16).contains(&at) || Roll::read(altered).is_err(), "{at}");
    }
}

#[test]
fn a_roll_that_says_what_is_not_so_is_refused() {
    let frame =
        |kind: [u8; 4], payload: &[u8]| [&etude_trace::parts::head(kind, payload)[..], payload].concat();
    let start = compiled(&one_file())[..16].to_vec();
    let roll = |frames: &[Vec<u8>]| Roll::read([&start[..], &frames.concat()].concat()).unwrap_err();
    assert_eq!(roll(&[frame(*b"foot", b"{}")]), "has no head");
    let head = |threads: &str, calls: u64| {
        frame(*b"head", format!(r#"{{"threads":[{threads}],"calls":{calls}}}"#).as_bytes())
    };
    let end = [0, 1, 0, 0, 6, 0, 0];
    let mark = frame(*b"mark", &zstd::bulk::compress(&end, 1).unwrap());
    let whole = |head: Vec<u8>| roll(&[head, mark.clone(), frame(*b"foot", b"{}")]);
    assert_eq!(whole(head(r#"{"process":9,"calls":0}"#, 0)), "has threads in other processes than it says");
    assert_eq!(whole(head(r#"{"process":0,"calls":7}"#, 7)), "has other calls than it says");
}

fn any_step() -> impl Strategy<Value = (u32, Action)> {
    let call = (
        1..=Call::MANY,
        any::<[u64; 6]>(),
        any::<i64>(),
        any::<Option<u64>>(),
        proptest::collection::vec(any::<u8>(), 0..9),
    );
    let call = call.prop_map(|(code, arguments, result, duration_ns, bytes)| {
        let call = Call::from_code(code).unwrap();
        let kinds = call.row().arguments.iter().position(|kind| *kind == etude_calls::Kind::Path);
        let bytes: Vec<u8> = bytes.into_iter().filter(|byte| *byte != 0).collect();
        let texts = kinds.map(|at| Text { argument: at as u8, bytes: bytes.into() }).into_iter().collect();
        Action::Call(Called { call, arguments, texts, result, duration_ns })
    });
    (0..2_u32, prop_oneof![call, any::<u64>().prop_map(Action::Compute), Just(Action::Exec)])
}

proptest! {
    #[test]
    fn any_script_becomes_a_roll_that_is_read(steps in proptest::collection::vec(any_step(), 0..60)) {
        let mut all = vec![(0, Action::Fork(1))];
        all.extend(steps);
        let script = script(all);
        let calls = script.steps.iter().filter(|step| matches!(step.action, Action::Call(_))).count() as u64;
        let roll = Roll::read(compiled(&script)).unwrap();
        prop_assert_eq!(roll.head.calls, calls);
        let mut events = Vec::new();
        let mut decoded = 0;
        for thread in 0..2 {
            let mut reading = Reading::new(thread);
            while reading.more(&roll) {
                reading.read(&roll, &mut events).unwrap();
                decoded += events.len() as u64;
            }
        }
        prop_assert_eq!(decoded, calls);
    }

    #[test]
    fn what_is_needed_is_read_as_it_was_written(
        files in proptest::collection::vec(("[a-c/]{1,9}", 0..4_u8, any::<u64>(), proptest::option::of(any::<u32>())), 0..30)
    ) {
        let mut with = one_file();
        for (path, kind, bytes, allocated) in &files {
            let what = match kind {
                0 | 1 => What::File { bytes: *bytes, allocated: allocated.map(u64::from), seen: *kind == 0 },
                2 => What::Directory,
                _ => What::Link(b"a/b"[..].into()),
            };
            with.needed.push(Needed { path: path.as_bytes().into(), what });
        }
        let mut read = Roll::read(compiled(&with)).unwrap().needed;
        // They stand in the order of their first use.
        [&mut read, &mut with.needed].into_iter().for_each(|all| all.sort_by(|a, b| a.path.cmp(&b.path)));
        prop_assert_eq!(read, with.needed);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Roll::read(bytes);
    }
}
