//! Whether knobs fit together.

use crate::choice::Spread;
use crate::kind::Kind;
use crate::knobs::Workload;

/// The first contradiction, in one line.
pub(crate) fn check(workload: &Workload) -> Result<(), String> {
    let knobs = &workload.knobs;
    let weight = |kind| knobs.mix.weight(kind);
    let rules: [(bool, &str); 14] = [
        (knobs.mix.total() > 0.0, "mix: no operation has a weight; give one, as mix.read=1"),
        (
            alike(weight(Kind::Create) + weight(Kind::Symlink), weight(Kind::Remove)),
            "mix: remove must weigh as much as create and symlink together, or files would run out or pile up",
        ),
        (alike(weight(Kind::Mkdir), weight(Kind::Rmdir)), "mix: rmdir must weigh as much as mkdir"),
        (
            (weight(Kind::Create) == 0.0 && weight(Kind::Rename) == 0.0) || knobs.churn > 0.0,
            "churn: create, remove and rename need files that come and go; set churn above 0",
        ),
        (
            (weight(Kind::Mkdir) == 0.0 && weight(Kind::Symlink) == 0.0) || knobs.spare > 0,
            "spare: mkdir and symlink need directories and links that come and go; set spare above 0",
        ),
        (
            weight(Kind::Readlink) == 0.0 || knobs.links > 0.0,
            "links: readlink needs links; set links above 0",
        ),
        (
            knobs.write_sequential + knobs.write_append <= 1.0 + 1e-9,
            "write_sequential and write_append: together they are more than all writes",
        ),
        (
            !knobs.fill || weight(Kind::Create) == 0.0 || weight(Kind::Write) > 0.0,
            "fill: what is created is filled by writes, and mix has none; give write a weight, or set fill=false",
        ),
        (
            knobs.log_every == 0.0 || knobs.log_files > 0,
            "log_files: batches are to be written and there is no log; set log_files=1, or log_every=0",
        ),
        (knobs.log_every == 0.0 || knobs.log_every >= 1.0, "log_every: expected 0, or 1 and more"),
        (knobs.log_write <= knobs.log_bytes, "log_write: one write is larger than the whole log (log_bytes)"),
        (
            knobs.sizes.share_up_to(knobs.largest) >= 0.01,
            "largest: less than a hundredth of `sizes` is as small as that; make it larger",
        ),
        (
            knobs.files > 0 || knobs.files_per_rate > 0.0 || knobs.bytes_per_rate > 0.0,
            "files: there are none; set files, files_per_rate or bytes_per_rate above 0",
        ),
        (
            knobs.directories > 0 || knobs.directory_spread == Spread::Even,
            "directory_spread: files are spread by it over a given number of directories; set directories above 0",
        ),
    ];
    rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err(why.to_owned()))
}

fn alike(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.max(other)
}
