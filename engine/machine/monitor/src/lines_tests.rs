//! What is written can be read, whatever the names of processes, disks and sensors.

use proptest::prelude::*;
use serde_json::Value;

use crate::lines::{self, Cost, Head};
use crate::messages::Message;
use crate::source::Column;
use crate::top::{Entry, Listed};

/// The only line of it.
fn read(line: &[u8]) -> Value {
    let text = str::from_utf8(line).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    serde_json::from_str(text).unwrap()
}

fn entry(name: String) -> Entry {
    let cgroup = Some(name.clone());
    let io = Some((5, 6));
    Entry { pid: 1, name, start: 2, cpu_ns: 590_000_400, children_ns: 0, parent: 3, rss_bytes: 4, io, cgroup }
}

proptest! {
    #[test]
    fn any_name_is_written_and_read_again(name in "\\PC{0,40}|[\u{0}-\u{1f}\"\\\\]{0,9}", level in 0..8u8) {
        let mut line = Vec::new();
        lines::columns(&mut line, &[Column::level(&*name, "°C", 1.0)], &vec![(name.clone(), name.clone())], None);
        let found = read(&line);
        prop_assert_eq!(&found["columns"][0]["name"], &*name);
        prop_assert_eq!(&found["absent"][&name], &*name);

        line.clear();
        let top = Listed { entries: vec![entry(name.clone())], processes: 9, unseen_ns: None };
        lines::sample(&mut line, 5, 0, &[], Some(&top));
        prop_assert_eq!(&read(&line)["top"][0]["name"], &*name);
        prop_assert_eq!(&read(&line)["top"][0]["cgroup"], &*name);

        line.clear();
        let message = Message { level, facility: 3, sequence: 1, us: 2, text: name.clone() };
        lines::message(&mut line, 7, &message);
        prop_assert_eq!(&read(&line)["kernel"], &*name);
        prop_assert_eq!(&read(&line)["facility"], 3);
    }

    #[test]
    fn any_finite_number_is_written_and_read_again(values in proptest::collection::vec(proptest::option::of(-1e18..1e18), 0..9)) {
        let mut line = Vec::new();
        lines::sample(&mut line, 1, 0, &values, None);
        let found = read(&line);
        let again: Vec<Option<f64>> = found["v"].as_array().unwrap().iter().map(Value::as_f64).collect();
        prop_assert_eq!(again, values);
        prop_assert!(found.get("top").is_none() && found.get("suspended").is_none());
    }
}

#[test]
fn members_that_say_nothing_are_left_out() {
    let mut line = Vec::new();
    let mut listed =
        Listed { entries: vec![entry("a".to_owned())], processes: 1, unseen_ns: Some(1_500_000) };
    listed.entries[0].cgroup = None;
    listed.entries[0].io = None;
    lines::sample(&mut line, 1_000_000_007, 2_500_000_000, &[Some(0.07), None], Some(&listed));
    let expected = "{\"ns\":1000000007,\"suspended\":2.5,\"v\":[0.07,null],\"top\":[{\"pid\":1,\"name\":\"a\",\"start\":2,\
                    \"cpu\":0.59,\"parent\":3,\"rss\":4,\"read\":null,\"written\":null}],\"processes\":1,\"unseen\":0.0015}\n";
    assert_eq!(str::from_utf8(&line).unwrap(), expected);
}

#[test]
fn the_end_tells_what_it_cost_as_a_share() {
    let mut line = Vec::new();
    let cost = Cost { cpu_ns: 2_000_000, elapsed_ns: 4_000_000_000, wall_ns_median: None, wall_ns_max: None };
    lines::end(&mut line, 3, 0, &cost);
    let found = read(&line);
    assert_eq!(found["cost"]["share_of_a_core"], 0.0005);
    assert_eq!(found["cost"]["wall_ns_median"], Value::Null, "without a sample there is none");
}

#[test]
fn the_head_is_one_line_also_without_a_boot_id() {
    let mut line = Vec::new();
    let head =
        Head { start: "2026", start_ns: 5, boot_id: None, every_ns: 100_000_000, top: 3, cpus: &[0, 7] };
    lines::head(&mut line, &head);
    let found = read(&line);
    assert_eq!((&found["boot_id"], &found["every_s"]), (&Value::Null, &Value::from(0.1)));
    assert_eq!(found["cpus"], serde_json::json!([0, 7]));
}

#[test]
fn messages_that_were_not_kept_are_counted() {
    let mut line = Vec::new();
    lines::dropped(&mut line, 3, 1234);
    assert_eq!(read(&line)["dropped"], 1234);
}
