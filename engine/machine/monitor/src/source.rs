//! What is sampled: columns, and the sources that fill them.

/// How the numbers of a column are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What was added since the sample before.
    Interval,
    /// What it was at the sample.
    Level,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Interval => "interval",
            Kind::Level => "level",
        }
    }
}

/// One column of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    /// Empty for counts.
    pub unit: &'static str,
    pub kind: Kind,
    /// How many of what a source reads are one of the unit.
    pub per: f64,
}

impl Column {
    pub fn interval(name: impl Into<String>, unit: &'static str, per: f64) -> Column {
        Column { name: name.into(), unit, kind: Kind::Interval, per }
    }

    pub fn level(name: impl Into<String>, unit: &'static str, per: f64) -> Column {
        Column { name: name.into(), unit, kind: Kind::Level, per }
    }
}

/// What is not there, and why.
pub type Absent = Vec<(String, String)>;

/// A file of the kernel's, or some of one kind.
pub trait Source {
    /// In the order of the values.
    fn columns(&self) -> Vec<Column>;

    fn absent(&self) -> Absent {
        Absent::new()
    }

    /// Appends a value for each column, None for what could not be read; true where the columns are others than before.
    /// With `look_again` devices that came or went unseen are looked for, too.
    fn read(&mut self, look_again: bool, values: &mut Vec<Option<i64>>) -> bool;
}
