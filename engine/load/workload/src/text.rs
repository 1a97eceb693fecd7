//! Workloads as text: read, changed knob by knob, shown.

use std::fmt::Write as _;

use toml::de::{DeTable, DeValue};

use crate::check::check;
use crate::knobs::{KNOBS, Knob, Knobs, Workload};
use crate::parse::nearest;
use crate::presets;

fn knob(name: &str) -> Result<&'static Knob, String> {
    KNOBS.iter().find(|knob| knob.name == name).ok_or_else(|| {
        let names = KNOBS.iter().map(|knob| knob.name).chain(["name", "preset"]);
        format!("{name:?} is no knob; the nearest is {}", nearest(name, names))
    })
}

impl Workload {
    /// One of the ready-made workloads, by name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Workload> {
        presets::preset(name)
    }

    /// Names of the ready-made workloads.
    #[must_use]
    pub fn names() -> &'static [&'static str] {
        &presets::NAMES
    }

    /// Reads the knobs from TOML: `name = "mine"`, `preset = "web"` for a ready-made one to begin with, and a value for each
    /// knob that is to have another.
    ///
    /// # Errors
    /// One line, with the file (`origin`) and the line in it.
    pub fn read(text: &str, origin: &str) -> Result<Workload, String> {
        let line = |at: usize| 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
        let table = DeTable::parse(text).map_err(|why| {
            let at = why.span().map_or(0, |span| span.start);
            let why = why.message().replace('\n', "; ");
            format!("{origin}:{}: {why}", line(at))
        })?;
        let mut members: Vec<_> = table.get_ref().iter().collect();
        // First what to begin with, then in order: the first mistake in the file is told of.
        members.sort_by_key(|(key, _)| (key.get_ref().as_ref() != "preset", key.span().start));
        let mut workload = Workload::plain(origin);
        for (key, value) in members {
            let at = line(key.span().start);
            let place = format!("{origin}:{at}");
            workload.take(key.get_ref(), value.get_ref(), &place).map_err(|why| format!("{place}: {why}"))?;
        }
        check(&workload).map_err(|why| format!("{origin}: {why}"))?;
        Ok(workload)
    }

    /// Every knob at its default, which is no workload yet: nothing is done in it.
    fn plain(name: &str) -> Workload {
        Workload { name: one_line(name), knobs: Knobs::default(), sources: Default::default() }
    }

    fn take(&mut self, key: &str, value: &DeValue<'_>, place: &str) -> Result<(), String> {
        match key {
            "preset" => {
                let name = value.as_str().ok_or("preset: expected a name in quotes")?;
                let known = || {
                    format!(
                        "{name:?} is no preset; the nearest is {}",
                        nearest(name, presets::NAMES.into_iter())
                    )
                };
                let found = presets::preset(name).ok_or_else(known)?;
                (self.knobs, self.sources, self.name) = (found.knobs, found.sources, found.name);
                Ok(())
            }
            "name" => {
                self.name = one_line(value.as_str().ok_or("name: expected a text in quotes")?);
                Ok(())
            }
            _ => {
                let knob = knob(key)?;
                let value = plain_text(value).map_err(|why| format!("{key}: {why}"))?;
                (knob.set)(self, &value).map_err(|why| format!("{key}: {why}"))?;
                self.sources.insert(knob.name, place.to_owned());
                Ok(())
            }
        }
    }

    /// Gives one knob another value: `files=2000`, `popularity=zipf:0.9`, `mix.read=50` (one weight), `mix=read=2,write=1`
    /// (all weights). Whether knobs fit together is for [`Workload::check`], once all are set.
    ///
    /// # Errors
    /// One line that names the knob, or the one whose name is nearest.
    pub fn set(&mut self, assignment: &str) -> Result<(), String> {
        let (name, value) = assignment
            .split_once('=')
            .ok_or_else(|| format!("{assignment:?}: expected KNOB=VALUE, as files=2000"))?;
        let (name, value) = (name.trim(), value.trim());
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        if name == "name" {
            self.name = one_line(value);
            return Ok(());
        }
        if let Some(kind) = name.strip_prefix("mix.") {
            self.knobs.mix.set(kind, value).map_err(|why| format!("mix: {why}"))?;
            self.sources.insert("mix", format!("{}; then set: {name}={value}", self.source("mix")));
            return Ok(());
        }
        let knob = knob(name)?;
        (knob.set)(self, value).map_err(|why| format!("{name}: {why}"))?;
        self.sources.insert(knob.name, "set".to_owned());
        Ok(())
    }

    fn source(&self, knob: &str) -> &str {
        self.sources.get(knob).map_or("default", String::as_str)
    }

    /// All knobs as TOML that `read` takes: above each what it is, its unit, and where its value is from.
    #[must_use]
    pub fn show(&self) -> String {
        let mut out = format!(
            "# All knobs of this workload, each with its unit and the source of its value.\nname = {}\n",
            quoted(&self.name)
        );
        for knob in KNOBS {
            let Knob { name, unit, what, toml, .. } = knob;
            let source = one_line(self.source(name));
            // Into a String nothing fails.
            let _ = write!(out, "\n# {what}\n# unit: {unit}; source: {source}\n{name} = {}\n", toml(self));
        }
        out
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the knobs fit together.
    ///
    /// # Errors
    /// One line that names the knobs which do not, and what to do.
    pub fn check(&self) -> Result<(), String> {
        check(self)
    }
}

/// A value of TOML as the text that knobs are read from.
fn plain_text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Ok(number.to_string()),
            Err(_) => Err(format!("{} is too large", number.as_str())),
        },
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(yes) => Ok(yes.to_string()),
        DeValue::Table(table) => {
            let mut members = Vec::new();
            for (key, member) in table {
                if matches!(member.get_ref(), DeValue::Table(_)) || key.get_ref().contains([',', '=']) {
                    return Err("expected a table of numbers".to_owned());
                }
                members.push(format!("{}={}", key.get_ref(), plain_text(member.get_ref())?));
            }
            Ok(members.join(","))
        }
        other => Err(format!("expected a number, a text, true, false or a table, not {}", other.type_str())),
    }
}

/// Names and places come from outside and stand in comments and in lines of errors.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
