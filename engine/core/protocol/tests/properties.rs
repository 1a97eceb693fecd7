//! What holds for any request, row and rubbish.

use std::borrow::Cow;

use etude_protocol::*;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

fn stdio() -> impl Strategy<Value = Stdio> {
    prop_oneof![
        Just(Stdio::Null),
        Just(Stdio::Inherit),
        Just(Stdio::Capture),
        any::<String>().prop_map(Stdio::File)
    ]
}

prop_compose! {
    fn worker()(
        argv in vec(any::<String>(), 0..4),
        env in btree_map(any::<String>(), option::of(any::<String>()), 0..3),
        cwd in option::of(any::<String>()),
        (stdin, stdout, stderr) in (stdio(), stdio(), stdio()),
        cpus in option::of(vec(any::<u32>(), 0..3)),
    ) -> Worker {
        Worker { argv, env, cwd, stdin, stdout, stderr, cpus }
    }
}

prop_compose! {
    fn launch()(
        id in any::<u64>(),
        workers in vec(worker(), 0..3),
        timeout_s in option::of(0.0..1e9),
        grace_s in 0.0..1e9,
        (inner, counting, keep, any, inside, told) in any::<(u32, u8, bool, bool, bool, bool)>(),
        cgroup in option::of(any::<String>()),
        capture_bytes in any::<u32>(),
        repeat in option::of((any::<u64>(), option::of(0.0..1e9), any::<String>(), any::<u64>(), any::<u64>())),
    ) -> Launch {
        Launch {
            id, workers, timeout_s, grace_s, inner, cgroup,
            counters: [Counting::Off, Counting::Auto, Counting::On][usize::from(counting % 3)],
            capture_bytes: capture_bytes as usize,
            leftovers: if keep { Leftovers::Keep } else { Leftovers::End },
            accept: if any { Accept::Any } else { Accept::Zero },
            barrier: if inside { Barrier::Inside } else { Barrier::Start },
            release: if told { Release::Told } else { Release::Own },
            repeat: repeat.map(|(count, within_s, journal, trial, block)| {
                Repeat { count, within_s, journal, trial, block, head: Default::default() }
            }),
        }
    }
}

fn metric() -> impl Strategy<Value = Metric> {
    let unit = || prop_oneof!["s", "B", "1"].prop_map(Cow::Owned);
    prop_oneof![
        (any::<u64>(), unit()).prop_map(|(n, unit)| Metric::Known { value: Value::Whole(n), unit }),
        (-1e300..1e300, unit()).prop_map(|(x, unit)| Metric::Known { value: Value::Real(x), unit }),
        (any::<String>(), unit()).prop_map(|(reason, unit)| Metric::Unknown { unit, reason }),
    ]
}

prop_compose! {
    fn row()(
        worker in 0usize..100,
        (start_ns, inner, exit_status, timed_out) in any::<(Option<u64>, u32, Option<i32>, bool)>(),
        (start, error) in any::<(Option<String>, Option<String>)>(),
        metrics in btree_map("[a-z_]{1,9}", metric(), 0..5),
        stdout in option::of((any::<u64>(), any::<String>())),
        notes in vec(any::<String>(), 0..2),
    ) -> Row {
        let metrics = Metrics(metrics.into_iter().map(|(name, metric)| (Cow::Owned(name), metric)).collect());
        let stdout = stdout.map(|(bytes, tail)| Captured { bytes, tail, sha256: String::new() });
        Row { worker, start, start_ns, inner, exit_status, timed_out, error, metrics, stdout, notes, ..Row::default() }
    }
}

proptest! {
    #[test]
    fn a_request_comes_back_as_it_was(launch in launch()) {
        let request = Request::Launch(Box::new(launch));
        let text = serde_json::to_string(&request).unwrap();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(parse(text.as_bytes()), Ok(request));
    }

    #[test]
    fn a_row_comes_back_as_it_was_on_one_line(row in row()) {
        let text = serde_json::to_string(&row).unwrap();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    }

    #[test]
    fn rubbish_is_answered(bytes in vec(any::<u8>(), 0..200)) {
        if let Err((_, error)) = parse(&bytes) {
            prop_assert!(!error.contains('\n'));
        }
    }

    #[test]
    fn a_damaged_request_is_answered(launch in launch(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = serde_json::to_vec(&Request::Launch(Box::new(launch))).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        let _ = parse(&text);
        let _ = parse(&text[..at]);
    }
}
