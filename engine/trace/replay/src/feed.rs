//! The calls of a thread, decoded ahead of their time.

use std::collections::VecDeque;

use etude_trace::Event;

use crate::clock::now_ns;
use crate::roll::{Reading, Roll};

/// Chunks that a thread keeps decoded.
const AHEAD: usize = 4;
/// Chunks that are decoded before the beginning, of all threads.
const MOST_BEFORE: usize = 64;
/// So much longer than decoding a chunk took a gap has to be.
const SAFETY: i64 = 3;

/// The chunks of a thread.
pub struct Feed {
    reading: Reading,
    ready: VecDeque<Vec<Event>>,
    spare: Vec<Vec<Event>>,
    /// The longest that decoding a chunk took, ns.
    takes: i64,
}

impl Feed {
    pub fn new(thread: usize) -> Feed {
        Feed { reading: Reading::new(thread), ready: VecDeque::new(), spare: Vec::new(), takes: 200_000 }
    }

    /// Those of all threads, with what comes first of each decoded.
    ///
    /// # Errors
    /// The error of the roll.
    pub fn begin(roll: &Roll) -> Result<Vec<Feed>, String> {
        let mut feeds: Vec<Feed> = (0..roll.head.threads.len()).map(Feed::new).collect();
        let (mut room, mut ahead, mut more) = (MOST_BEFORE, 1, true);
        while room > 0 && more {
            more = false;
            for feed in &mut feeds {
                if feed.more(roll, ahead)? {
                    (room, more) = (room - 1, true);
                }
                if room == 0 {
                    break;
                }
            }
            ahead += 1;
        }
        Ok(feeds)
    }

    /// The next calls, None where there are no more; and whether they were decoded only now.
    ///
    /// # Errors
    /// The error of the roll.
    pub fn next(&mut self, roll: &Roll) -> Result<(Option<Vec<Event>>, bool), String> {
        let late = self.ready.is_empty() && self.more(roll, 1)?;
        Ok((self.ready.pop_front(), late))
    }

    /// The memory of calls that were made.
    pub fn give_back(&mut self, events: Vec<Event>) {
        self.spare.push(events);
    }

    /// Decodes what is to come while there is time for it until then; when that was done.
    pub fn use_gap(&mut self, roll: &Roll, mut now: i64, until: i64) -> i64 {
        while until.saturating_sub(now) > SAFETY * self.takes {
            match self.more(roll, AHEAD) {
                Ok(true) => now = now_ns(),
                // What is damaged is found when its time comes.
                Ok(false) | Err(_) => break,
            }
        }
        now
    }

    /// Decodes one more; false where there is none, or enough are there.
    fn more(&mut self, roll: &Roll, ahead: usize) -> Result<bool, String> {
        if !self.reading.more(roll) || self.ready.len() >= ahead {
            return Ok(false);
        }
        let (mut events, begun) = (self.spare.pop().unwrap_or_default(), now_ns());
        self.reading.read(roll, &mut events)?;
        self.ready.push_back(events);
        self.takes = self.takes.max(now_ns() - begun);
        Ok(true)
    }
}
