//! Temperatures: `/sys/class/hwmon` and, where no such sensor says the same, `/sys/class/thermal`.

use std::time::Duration;

use crate::kept::{Kept, Root};
use crate::source::{Absent, Column, Source};

/// Sensors in disks: to read one sends the disk a command, and may wake it.
const IN_DISKS: [&str; 2] = ["nvme", "drivetemp"];
/// Sensors behind a slow bus would cost more than all else together.
const SLOW: Duration = Duration::from_millis(1);

struct Sensor {
    name: String,
    file: Kept,
}

/// The source.
pub struct Temperature {
    root: Root,
    sensors: Vec<Sensor>,
    absent: Absent,
}

impl Temperature {
    pub fn open(root: &Root) -> Temperature {
        let mut source = Temperature { root: root.clone(), sensors: Vec::new(), absent: Absent::new() };
        source.look();
        source
    }

    fn look(&mut self) {
        self.sensors.clear();
        self.absent.clear();
        for chip in self.root.names("sys/class/hwmon") {
            self.look_at_chip(&format!("sys/class/hwmon/{chip}"));
        }
        for zone in self.root.names("sys/class/thermal") {
            self.look_at_zone(&format!("sys/class/thermal/{zone}"));
        }
        if self.sensors.is_empty() && self.absent.is_empty() {
            let why = "there are no sensors in /sys/class/hwmon and /sys/class/thermal".to_owned();
            self.absent.push(("temperature".to_owned(), why));
        }
    }

    fn look_at_chip(&mut self, chip: &str) {
        let Some(driver) = self.word(&format!("{chip}/name")) else { return };
        let names = self.root.names(chip);
        let inputs = || {
            names
                .iter()
                .filter_map(|name| name.strip_suffix("_input").filter(|name| name.starts_with("temp")))
        };
        if IN_DISKS.contains(&driver.as_str()) && inputs().next().is_some() {
            self.leave_out(&driver, "not read: that would send the disk a command each time");
            return;
        }
        let labels: Vec<(&str, Option<String>)> =
            inputs().map(|input| (input, self.word(&format!("{chip}/{input}_label")))).collect();
        let of_package =
            |label: &Option<String>| label.as_ref().is_some_and(|label| label.starts_with("package_id"));
        let has_package = labels.iter().any(|(_, label)| of_package(label));
        for (input, label) in labels {
            // The package's sensor is the hottest core's, and to read a core's own interrupts that core.
            if has_package && label.as_ref().is_some_and(|label| label.starts_with("core_")) {
                continue;
            }
            let name = format!("{driver}.{}", label.unwrap_or_else(|| input.to_owned()));
            self.add(&name, &format!("{chip}/{input}_input"));
        }
    }

    fn look_at_zone(&mut self, zone: &str) {
        let Some(kind) = self.word(&format!("{zone}/type")) else { return };
        let of_hwmon = |sensor: &Sensor| sensor.name.split('.').next() == Some(&kind);
        // The kernel shows most zones as chips of hwmon, too; x86_pkg_temp is what coretemp calls the package.
        let twice = self.sensors.iter().any(of_hwmon)
            || kind == "x86_pkg_temp"
                && self.sensors.iter().any(|sensor| sensor.name.starts_with("coretemp."));
        if !twice {
            self.add(&kind, &format!("{zone}/temp"));
        }
    }

    fn add(&mut self, name: &str, path: &str) {
        let name = self.unique(name);
        let Ok(file) = Kept::open(&self.root, path) else { return };
        // The quicker of two: the first may have to wait for something else.
        let took = (0..2).filter_map(|_| {
            let start = etude_clock::monotonic_ns();
            file.number().map(|_| Duration::from_nanos(etude_clock::monotonic_ns() - start))
        });
        match took.min() {
            Some(took) if took < SLOW => self.sensors.push(Sensor { name, file }),
            Some(took) => self.leave_out(&name, &format!("not read: one reading takes {took:.1?}")),
            None => self.leave_out(&name, "the sensor gives no number"),
        }
    }

    fn leave_out(&mut self, name: &str, why: &str) {
        self.absent.push((format!("temperature.{name}"), why.to_owned()));
    }

    /// A name that no other sensor has: two packages are two chips of one name.
    fn unique(&self, name: &str) -> String {
        let is_free = |name: &String| self.sensors.iter().all(|sensor| sensor.name != *name);
        let names = std::iter::once(name.to_owned()).chain((2..).map(|count| format!("{name}_{count}")));
        names.into_iter().find(is_free).unwrap_or_default()
    }

    /// The text of a file as a word of a column's name.
    fn word(&self, below: &str) -> Option<String> {
        let text = self.root.text(below)?;
        let letters = text.trim_ascii().iter().map(|byte| match byte {
            b'a'..=b'z' | b'0'..=b'9' => char::from(*byte),
            b'A'..=b'Z' => char::from(byte.to_ascii_lowercase()),
            _ => '_',
        });
        Some(letters.collect()).filter(|word: &String| !word.is_empty())
    }
}

impl Source for Temperature {
    fn columns(&self) -> Vec<Column> {
        let of = |sensor: &Sensor| Column::level(format!("temperature.{}", sensor.name), "°C", 1000.0);
        self.sensors.iter().map(of).collect()
    }

    fn absent(&self) -> Absent {
        self.absent.clone()
    }

    fn read(&mut self, look_again: bool, values: &mut Vec<Option<i64>>) -> bool {
        let mut changed = false;
        if look_again {
            let before = self.columns();
            self.look();
            changed = self.columns() != before;
        }
        values.extend(self.sensors.iter().map(|sensor| sensor.file.number()));
        changed
    }
}
