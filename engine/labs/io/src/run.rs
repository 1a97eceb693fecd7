//! One run, from its preparation to its samples.

use std::fs::File;
use std::io::{self, Seek, Write};

use etude_counters::Around;
use etude_micro::buffer::Buffer;
use etude_micro::exit::{Fail, IOERR, OSERR, said};
use etude_micro::pin;
use etude_micro::report::{Sample, Style};
use etude_micro::usage::Usage;

use crate::cool;
use crate::direct;
use crate::file;
use crate::methods::{Calls, Mapped, Ring};
use crate::options::{Method, Operation, Options};
use crate::timed::{Stopped, Transfer, timed};

/// What a run found.
#[derive(Debug)]
pub struct Outcome {
    /// One an iteration.
    pub samples: Vec<Sample>,
    /// By which means the file was dropped from the page cache, if it was.
    pub cooled_by: Option<&'static str>,
}

/// Reads the file, or writes over it, as often as asked.
///
/// # Errors
/// Anything on the way; there are no results of a part of a run.
pub fn run(options: &Options) -> Result<Outcome, Fail> {
    options.cpu.map_or(Ok(()), pin::to)?;
    let order = options.shuffle.map(|seed| options.blocks.shuffled(seed)).transpose()?;
    let file = file::open(options)?;
    let mut counters = options.counters.and_then(Around::open);
    if !options.bare {
        cool::settle(&file, options)?;
    }
    let mut outcome = Outcome { samples: Vec::new(), cooled_by: None };
    for iteration in 0..options.iterations {
        outcome.cooled_by = cool::cool(&file, options)?;
        if iteration > 0 && options.method == Method::Plain {
            rewind(&file, options)?;
        }
        outcome.samples.push(iterate(options, &file, order.as_deref(), &mut counters)?);
    }
    // Otherwise the configuration says it.
    if outcome.cooled_by == Some("fadvise") && options.style == Style::Rates {
        let note =
            "NOTE: --cool drop: only the file's own pages were dropped (posix_fadvise); root could drop all";
        let _ = writeln!(io::stderr(), "{note}");
    }
    Ok(outcome)
}

fn rewind(mut file: &File, options: &Options) -> Result<(), Fail> {
    let doing =
        |error| Fail::call(IOERR, format!("rewind {} for another iteration", options.path.display()), &error);
    file.rewind().map_err(doing)
}

/// One iteration: a buffer mapped afresh, and the way of moving bytes chosen.
fn iterate(
    options: &Options,
    file: &File,
    order: Option<&[u64]>,
    counters: &mut Option<Around>,
) -> Result<Sample, Fail> {
    let mut memory = Buffer::map(options.blocks.size, options.huge)?;
    if options.touch {
        memory.touch();
    }
    let buffer = memory.as_mut_ptr();
    let (path, total) = (&options.path, options.blocks.total());
    let mut measure = Measure { options, file, order, counters };
    match (options.method, options.operation == Operation::Write) {
        (Method::Plain, false) => measure.with(Calls::<false, false>::new(file, buffer)),
        (Method::Plain, true) => measure.with(Calls::<true, false>::new(file, buffer)),
        (Method::Positioned, false) => measure.with(Calls::<false, true>::new(file, buffer)),
        (Method::Positioned, true) => measure.with(Calls::<true, true>::new(file, buffer)),
        (Method::Mapped, false) => measure.with(Mapped::<false>::new(file, path, total, buffer)?),
        (Method::Mapped, true) => measure.with(Mapped::<true>::new(file, path, total, buffer)?),
        (Method::Ring, false) => measure.with(Ring::<false>::new(file, buffer)?),
        (Method::Ring, true) => measure.with(Ring::<true>::new(file, buffer)?),
    }
}

struct Measure<'a> {
    options: &'a Options,
    file: &'a File,
    order: Option<&'a [u64]>,
    counters: &'a mut Option<Around>,
}

impl Measure<'_> {
    /// Times all transfers; what else is measured encloses the clock's readings, not the other way round.
    fn with(&mut self, mut transfer: impl Transfer) -> Result<Sample, Fail> {
        let options = self.options;
        let before = options.usage.then(Usage::now);
        if let Some(counters) = self.counters {
            counters.start();
        }
        let elapsed_ns = timed(&mut transfer, options.blocks, self.order, options.sync);
        let counts = self.counters.as_mut().map(Around::stop);
        let usage = before.map(|before| Usage::now().since(before));
        let elapsed_ns = elapsed_ns.map_err(|why| stop(options, self.file, why))?;
        Ok(Sample { bytes: options.blocks.total(), elapsed_ns, usage, counts })
    }
}

fn stop(options: &Options, file: &File, why: Stopped) -> Fail {
    let (path, call) = (options.path.display(), options.method.word(options.operation));
    match why {
        Stopped::Short { offset, asked, moved } => {
            let size = file.metadata().map_or("?".to_owned(), |metadata| metadata.len().to_string());
            let line = format!(
                "{path}: a {call} of {asked} bytes at offset {offset} moved {moved}: the file has {size} bytes now; \
                 nothing else may change it meanwhile"
            );
            Fail::new(IOERR, line)
        }
        Stopped::Failed { error, .. } if options.direct && error.raw_os_error() == Some(libc::EINVAL) => {
            direct::refused(file, &options.path, options.blocks)
        }
        Stopped::Failed { offset, asked, error } => {
            Fail::call(IOERR, format!("{path}: {call} of {asked} bytes at offset {offset}"), &error)
        }
        Stopped::Sync(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Fail::new(OSERR, format!("{path}: it cannot be synced; leave out -s"))
        }
        Stopped::Sync(error) => Fail::new(IOERR, format!("{path}: sync: {}", said(&error))),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::options::tests::parsed;

    fn failed(line: &str, number: i32) -> Fail {
        let options = parsed(line).expect(line);
        let file = File::open("/proc/self/exe").expect("we run");
        let error = io::Error::from_raw_os_error(number);
        stop(&options, &file, Stopped::Failed { offset: 4096, asked: 100, error })
    }

    #[test]
    fn transfers_that_o_direct_refuses_are_told_the_alignment() {
        let fail = failed("read -d -b 100 -t 1000 x", libc::EINVAL);
        assert_eq!(fail.code, OSERR);
        assert!(fail.line.contains("x: O_DIRECT needs transfers in multiples of "), "{}", fail.line);
        let fail = failed("read -b 100 -t 1000 x", libc::EINVAL);
        assert_eq!(fail, Fail::new(IOERR, "x: read of 100 bytes at offset 4096: Invalid argument"));
    }
}
