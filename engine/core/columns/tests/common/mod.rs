//! Reads the file of columns back, as docs/reference/formats.md says it is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use etude_columns::{Reading, columns};
use serde_json::Value;

/// A file of columns.
pub struct Found {
    bytes: Vec<u8>,
    pub index: Value,
}

#[allow(dead_code, reason = "not every test file uses it")]
/// What the columns of one file of this text are, cut into pieces of `chunk` bytes.
pub fn read(text: &[u8], workers: Option<u64>, metrics: Option<&[&str]>, chunk: u64) -> Found {
    read_all(&[(text, workers)], metrics, chunk)
}

/// The same of several files.
pub fn read_all(texts: &[(&[u8], Option<u64>)], metrics: Option<&[&str]>, chunk: u64) -> Found {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let place = std::env::temp_dir().join(format!("etude-columns-{}-{number}", std::process::id()));
    std::fs::create_dir(&place).unwrap();
    let mut list = Vec::new();
    for (number, (text, workers)) in texts.iter().enumerate() {
        let path = place.join(number.to_string());
        std::fs::write(&path, text).unwrap();
        let workers = workers.map_or("-".to_owned(), |workers| workers.to_string());
        list.extend_from_slice(format!("{workers} {}\0", path.display()).as_bytes());
    }
    let out = File::create(place.join("out")).unwrap();
    let metrics = metrics.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let reading = Reading { metrics, chunk: Some(chunk), threads: Some(3) };
    columns(&reading, &mut &list[..], out).unwrap();
    let mut bytes = Vec::new();
    File::open(place.join("out")).unwrap().read_to_end(&mut bytes).unwrap();
    std::fs::remove_dir_all(place).unwrap();
    assert_eq!(&bytes[..8], b"etudecol");
    assert_eq!(u32::from_ne_bytes(bytes[8..12].try_into().unwrap()), 1);
    let word =
        |at: usize| usize::try_from(u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
    let index = serde_json::from_slice(&bytes[word(16)..word(16) + word(24)]).unwrap();
    Found { bytes, index }
}

impl Found {
    pub fn rows(&self) -> usize {
        usize::try_from(self.index["rows"].as_u64().unwrap()).unwrap()
    }

    /// The wrong line, from 1.
    pub fn wrong(&self) -> Option<u64> {
        self.index["wrong"].as_object().map(|wrong| wrong["line"].as_u64().unwrap())
    }

    /// A column by its name: numbers, texts (null for none), flags.
    pub fn column(&self, name: &str) -> Vec<Value> {
        let column = self.named("columns", name);
        let at = usize::try_from(column["at"].as_u64().unwrap()).unwrap();
        let each = |row: usize| match column["kind"].as_str().unwrap() {
            "i8" => Value::from(i64::from_ne_bytes(self.eight(at, row))),
            "u1" => Value::from(self.bytes[at + row]),
            _ => {
                let place = at + 4 * row;
                let code = u32::from_ne_bytes(self.bytes[place..place + 4].try_into().unwrap()) as usize;
                let texts = self.named("texts", name)["texts"].as_array().unwrap();
                code.checked_sub(1).map_or(Value::Null, |code| texts[code].clone())
            }
        };
        (0..self.rows()).map(each).collect()
    }

    /// Each metric's values by name and unit, None where there is none; without metrics that have no value at all.
    pub fn metrics(&self) -> BTreeMap<(String, String), Vec<Option<f64>>> {
        let metric = |metric: &Value| {
            let text = |member: &str| metric[member].as_str().unwrap().to_owned();
            let at = usize::try_from(metric["at"].as_u64().unwrap()).unwrap();
            let value = |row| Some(f64::from_ne_bytes(self.eight(at, row))).filter(|value| !value.is_nan());
            ((text("name"), text("unit")), (0..self.rows()).map(value).collect::<Vec<_>>())
        };
        let all = self.index["metrics"].as_array().unwrap().iter().map(metric);
        all.filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    }

    /// Per metric: pairs of a test and the reason why its first row without a value has none.
    #[allow(dead_code, reason = "not every test file uses it")]
    pub fn reasons(&self, metric: &str) -> Vec<(Value, Value)> {
        let text = |kind: &str, code: &Value| {
            let code = usize::try_from(code.as_u64().unwrap()).unwrap();
            self.named("texts", kind)["texts"][code - 1].clone()
        };
        let pairs = self.named("metrics", metric)["reasons"].as_array().unwrap().clone();
        pairs.iter().map(|pair| (text("test", &pair[0]), text("reason", &pair[1]))).collect()
    }

    fn named(&self, kind: &str, name: &str) -> &Value {
        self.index[kind].as_array().unwrap().iter().find(|each| each["name"] == name).unwrap()
    }

    fn eight(&self, at: usize, row: usize) -> [u8; 8] {
        self.bytes[at + 8 * row..at + 8 * row + 8].try_into().unwrap()
    }
}
