//! Measured quantities: a number with a unit, or nothing with the reason.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeTuple};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number: whole quantities stay whole on the line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Bytes, faults, events.
    Whole(u64),
    /// Seconds, and anything divided by the number of launches.
    Real(f64),
}

/// One metric of one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// What was measured.
    Known {
        /// The number.
        value: Value,
        /// `s`, `B` or `1`.
        unit: Cow<'static, str>,
    },
    /// What could not be measured: null on the line, never 0.
    Unknown {
        /// `s`, `B` or `1`.
        unit: Cow<'static, str>,
        /// Why not.
        reason: String,
    },
}

/// The metrics of one row, in the order in which they are written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(pub Vec<(Cow<'static, str>, Metric)>);

impl Metrics {
    /// Adds a duration in seconds.
    pub fn seconds(&mut self, name: &'static str, value: Result<f64, String>) {
        self.add(name, "s", value.map(Value::Real));
    }

    /// Adds a whole number of `unit`.
    pub fn whole(&mut self, name: &'static str, unit: &'static str, value: Result<u64, String>) {
        self.add(name, unit, value.map(Value::Whole));
    }

    /// Adds a number of `unit`, or the reason why there is none.
    pub fn add(&mut self, name: &'static str, unit: &'static str, value: Result<Value, String>) {
        let unit = Cow::Borrowed(unit);
        let metric = match value {
            Ok(value) => Metric::Known { value, unit },
            Err(reason) => Metric::Unknown { unit, reason },
        };
        self.0.push((Cow::Borrowed(name), metric));
    }

    /// The metric of that name.
    pub fn get(&self, name: &str) -> Option<&Metric> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, metric)| metric)
    }
}

impl Value {
    /// This quantity per launch, for a trial of `launches` launches.
    pub fn per(self, launches: u32) -> Value {
        match self {
            value if launches <= 1 => value,
            Value::Whole(number) => Value::Real(number as f64 / f64::from(launches)),
            Value::Real(number) => Value::Real(number / f64::from(launches)),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Metric::Known { value, unit } => {
                let mut pair = serializer.serialize_tuple(2)?;
                pair.serialize_element(value)?;
                pair.serialize_element(unit)?;
                pair.end()
            }
            Metric::Unknown { unit, reason } => {
                let mut triple = serializer.serialize_tuple(3)?;
                triple.serialize_element(&())?;
                triple.serialize_element(unit)?;
                triple.serialize_element(reason)?;
                triple.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Metric;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("[value, unit] or [null, unit, reason]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Metric, A::Error> {
                let short = || A::Error::custom("expected [value, unit] or [null, unit, reason]");
                let value: Option<Value> = seq.next_element()?.ok_or_else(short)?;
                let unit: Cow<'static, str> = seq.next_element()?.ok_or_else(short)?;
                match value {
                    Some(value) => Ok(Metric::Known { value, unit }),
                    None => Ok(Metric::Unknown { unit, reason: seq.next_element()?.ok_or_else(short)? }),
                }
            }
        }
        deserializer.deserialize_seq(Read)
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, metric) in &self.0 {
            map.serialize_entry(name, metric)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Metrics;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of metrics")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some(entry) = map.next_entry()? {
                    metrics.0.push(entry);
                }
                Ok(metrics)
            }
        }
        deserializer.deserialize_map(Read)
    }
}
