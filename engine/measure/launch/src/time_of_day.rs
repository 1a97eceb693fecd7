//! Time of day.

const DAY_S: u64 = 86_400;

/// UTC in RFC 3339 with nanoseconds, from ns since the epoch.
pub fn utc(realtime_ns: u64) -> String {
    let (seconds, fraction) = (realtime_ns / 1_000_000_000, realtime_ns % 1_000_000_000);
    let (year, month, day) = date(seconds / DAY_S);
    let second = seconds % DAY_S;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z")
}

/// Year, month, day from days since the epoch: whole years first, then whole months.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn known_instants() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(utc(951_782_400_000_000_001), "2000-02-29T00:00:00.000000001Z");
        assert_eq!(utc(1_735_689_599_999_999_999), "2024-12-31T23:59:59.999999999Z");
        assert_eq!(utc(4_107_542_400_000_000_000), "2100-03-01T00:00:00.000000000Z");
    }
}
