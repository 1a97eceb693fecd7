//! Helpers of the parsers of knobs: numbers, and the known name that is nearest to a wrong one.

use std::str::FromStr;

/// A number, as it stands in TOML: digits may be parted by underscores.
pub(crate) fn number<T: FromStr>(text: &str) -> Result<T, String> {
    let text = text.trim();
    let plain = text.replace('_', "");
    plain.parse().map_err(|_| format!("{text:?} is not a number that fits here"))
}

/// The one that takes the fewest changes of a letter to become `name`.
pub(crate) fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> &'a str {
    // Names of any length come from outside.
    let name: String = name.chars().take(64).collect();
    among.min_by_key(|other| changes(&name, other)).unwrap_or("")
}

/// How many letters must be put in, left out or replaced (Wagner and Fischer 1974).
fn changes(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (column, beside) in other.iter().enumerate() {
            let replaced = corner + usize::from(letter != *beside);
            corner = row[column + 1];
            row[column + 1] = replaced.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
