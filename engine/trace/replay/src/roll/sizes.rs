//! What a read will ask for and get, foretold from the sizes of files: a roll says only where it is otherwise.

use std::collections::HashMap;

use etude_calls::{Kind, Outcome};
use etude_script::{Needed, What};
use etude_trace::Event;

/// Descriptors that are followed.
const MOST: i64 = 1024;
/// Flags that are all 0 where a file is opened to be read as it is.
const CHANGES: u64 = (libc::O_ACCMODE | libc::O_TRUNC) as u64;

/// By number of a name, from 1: how large the file is at the beginning.
#[derive(Debug, Default)]
pub struct Sizes(HashMap<u64, u64>);

impl Sizes {
    /// `names`: all of them, in order.
    pub fn of<'a>(needed: &[Needed], names: impl Iterator<Item = &'a [u8]>) -> Sizes {
        let size = |each: &Needed| match each.what {
            What::File { bytes, .. } => Some(bytes),
            _ => None,
        };
        let by_path: HashMap<&[u8], u64> =
            needed.iter().filter_map(|each| Some((&each.path[..], size(each)?))).collect();
        let found = (1..).zip(names).filter_map(|(number, name)| Some((number, *by_path.get(name)?)));
        Sizes(found.collect())
    }
}

/// What is left to be read of an open file.
type Left = Option<u64>;

/// The files that a thread has opened to be read. What else is done to them makes it wrong at worst, and then the roll
/// says more: both sides compute the same.
#[derive(Debug, Default)]
pub struct Open(Vec<Left>);

impl Open {
    /// A read's size and result become how far they are from what was foretold.
    pub fn tell(&mut self, event: &mut Event, sizes: &Sizes) {
        let Some(place) = reads(event) else { return self.follow(event, sizes) };
        let Some(left) = self.left(event) else { return };
        let (asked, got) = (event.arguments[place], event.result);
        let told = first_of_all(asked, *left);
        event.arguments[place] = told;
        event.result = (got as u64).wrapping_sub(asked.min(*left)).wrapping_add(told) as i64;
        *left = left.saturating_sub(got.max(0) as u64);
    }

    /// Back again.
    pub fn read(&mut self, event: &mut Event, sizes: &Sizes) {
        let Some(place) = reads(event) else { return self.follow(event, sizes) };
        let Some(left) = self.left(event) else { return };
        let told = event.arguments[place];
        let asked = back_in_place(told, *left);
        let got = (event.result as u64).wrapping_sub(told).wrapping_add(asked.min(*left)) as i64;
        (event.arguments[place], event.result) = (asked, got);
        *left = left.saturating_sub(got.max(0) as u64);
    }

    fn left(&mut self, event: &Event) -> Option<&mut u64> {
        self.0.get_mut(usize::try_from(event.arguments[0]).ok()?)?.as_mut()
    }

    /// Calls that open and close.
    fn follow(&mut self, event: &Event, sizes: &Sizes) {
        match event.call.name() {
            "open" | "openat" if (0..MOST).contains(&event.result) => {
                let path = usize::from(event.call.name() == "openat");
                let reads = event.arguments[path + 1] & CHANGES == 0;
                let size = sizes.0.get(&event.arguments[path]).copied().filter(|_| reads);
                let place = event.result as usize;
                self.0.resize(self.0.len().max(place + 1), None);
                self.0[place] = size;
            }
            "close" => {
                if let Some(left) = usize::try_from(event.arguments[0]).ok().and_then(|at| self.0.get_mut(at))
                {
                    *left = None;
                }
            }
            _ => {}
        }
    }
}

/// Which argument says how much, of a read that moves a position.
fn reads(event: &Event) -> Option<usize> {
    let row = event.call.row();
    let is = event.call.name() == "read" && row.outcome == Outcome::Bytes;
    is.then(|| row.arguments.iter().position(|kind| *kind == Kind::Size)).flatten()
}

/// Numbers in another order: what was foretold is 0, and those below it make room.
fn first_of_all(number: u64, foretold: u64) -> u64 {
    match number {
        _ if number == foretold => 0,
        _ if number < foretold => number + 1,
        _ => number,
    }
}

fn back_in_place(told: u64, foretold: u64) -> u64 {
    match told {
        0 => foretold,
        _ if told <= foretold => told - 1,
        _ => told,
    }
}
