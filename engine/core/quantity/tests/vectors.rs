//! The examples that both languages' readers of quantities are checked against.

use etude_quantity::{duration, rate, share, size};
use serde_json::Value;

#[test]
fn every_vector_is_read_as_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/vectors/quantities.jsonl");
    let text = std::fs::read_to_string(path).expect("the vectors");
    let mut read = 0;
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).expect("JSON");
        let text = vector["text"].as_str().expect("a text");
        let found = match vector["kind"].as_str().expect("a kind") {
            // Only Python has options without a default unit.
            _ if vector.get("bare").is_some_and(Value::is_null) => continue,
            "duration" => duration(text, vector["bare"].as_str().unwrap_or("s")).map(Value::from),
            "size" => size(text).map(Value::from),
            "share" => share(text, vector["bare"].as_str().unwrap_or("1")).map(Value::from),
            "rate" => rate(text).map(Value::from),
            "bandwidth" | "any" => continue,
            other => panic!("no kind {other}"),
        };
        read += 1;
        let expected = Some(vector["value"].clone()).filter(|value| !value.is_null());
        let whole = expected.as_ref().and_then(Value::as_f64);
        let same = match (&found, &expected) {
            (Ok(found), Some(_)) => found.as_f64() == whole,
            (Err(why), None) => why.contains("expected") && !why.contains('\n'),
            _ => false,
        };
        assert!(same, "{line}: {found:?}");
    }
    assert!(read > 150, "{read}");
}
