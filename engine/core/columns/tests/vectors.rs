//! The examples that both sides of the boundary are checked against.

mod common;

use std::collections::BTreeMap;

use common::{Found, read_all};
use serde_json::Value;

#[test]
fn every_vector_is_read_as_it_says_however_it_is_cut() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/vectors/columns.jsonl");
    for line in std::fs::read_to_string(path).expect("the vectors").lines() {
        let vector: Value = serde_json::from_str(line).expect("JSON");
        for chunk in [1, 7, 300, 1 << 20] {
            check(&vector, chunk);
        }
    }
}

fn check(vector: &Value, chunk: u64) {
    let what = &vector["what"];
    let texts: Vec<_> = vector["files"].as_array().unwrap().iter().map(file).collect();
    let texts: Vec<_> = texts.iter().map(|(text, workers)| (text.as_bytes(), *workers)).collect();
    let metrics: Option<Vec<&str>> =
        vector["metrics"].as_array().map(|names| names.iter().map(text).collect());
    let found = read_all(&texts, metrics.as_deref(), chunk);
    let expected = vector["expect"].as_object().unwrap();
    for (name, expected) in expected {
        match name.as_str() {
            "rows" => assert_eq!(found.index["rows"], *expected, "{what}"),
            "wrong" => {
                for member in ["file", "line", "at"] {
                    assert_eq!(found.index["wrong"][member], expected[member], "{what}, cut at {chunk}");
                }
            }
            "torn" | "left_out" => {
                let files = found.index["files"].as_array().unwrap().iter();
                assert_eq!(files.map(|file| file[name].clone()).collect::<Value>(), *expected, "{what}");
            }
            "columns" => {
                for (name, values) in expected.as_object().unwrap() {
                    assert_eq!(Value::from(found.column(name)), *values, "{what}: {name}");
                }
            }
            "metrics" => check_metrics(&found, expected, what),
            "joins" => {
                let join = |metric: &Value| metric.get("join").map_or("", text).to_owned();
                let joins = found.index["metrics"].as_array().unwrap().iter().map(join);
                let wanted = expected.as_array().unwrap().iter().map(|each| text(&each[1]).to_owned());
                assert_eq!(joins.collect::<Vec<_>>(), wanted.collect::<Vec<_>>(), "{what}");
            }
            "reasons" => {
                for (metric, pairs) in expected.as_object().unwrap() {
                    let found = found.reasons(metric).into_iter().map(|(test, why)| vec![test, why]);
                    assert_eq!(found.collect::<Value>(), *pairs, "{what}");
                }
            }
            name => panic!("{name} is not looked at"),
        }
    }
    assert!(expected.contains_key("wrong") || found.wrong().is_none(), "{what}: {:?}", found.wrong());
}

fn check_metrics(found: &Found, expected: &Value, what: &Value) {
    let named = |metric: &Value| (text(&metric["name"]).to_owned(), text(&metric["unit"]).to_owned());
    let order: Vec<_> = found.index["metrics"].as_array().unwrap().iter().map(named).collect();
    let expected = expected.as_array().unwrap();
    let wanted = expected.iter().map(|each| (text(&each[0]).to_owned(), text(&each[1]).to_owned()));
    assert_eq!(order, wanted.collect::<Vec<_>>(), "{what}");
    let values = |each: &Value| each[2].as_array().unwrap().iter().map(Value::as_f64).collect();
    let all: BTreeMap<_, Vec<_>> = order.into_iter().zip(expected.iter().map(values)).collect();
    assert_eq!(found.metrics(), all, "{what}");
}

fn file(file: &Value) -> (String, Option<u64>) {
    (text(&file["text"]).to_owned(), file["workers"].as_u64())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
