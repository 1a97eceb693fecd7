//! What every replay refuses of a script, and `etude prepare` of the files that it needs.

use etude_calls::{Call, Kind, Moves, Outcome, Role};

use crate::model::{Action, Called, Script};
use crate::prepare::misplaced;

/// The most bytes that a replay moves by one call.
pub const MOST_MOVED: u64 = 1 << 30;

/// Where a script is wrong: the index of a step, or of something that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Step(usize),
    Needed(usize),
}

/// Whether a script can be replayed.
///
/// # Errors
/// The first place at which it cannot, and why.
pub fn playable(script: &Script) -> Result<(), (Place, String)> {
    misplaced(&script.needed).map_err(|(index, what)| (Place::Needed(index), what))?;
    for (index, step) in script.steps.iter().enumerate() {
        if let Action::Call(called) = &step.action
            && let Some(what) = called.unplayable()
        {
            return Err((Place::Step(index), what));
        }
    }
    Ok(())
}

impl Called {
    /// How large a buffer it needs.
    pub fn buffer(&self) -> u64 {
        let kinds = self.call.row().arguments;
        if let Some(Role::Request { .. }) = self.call.role() {
            return if kinds.get(2) == Some(&Kind::Size) { self.arguments[2] } else { 0 };
        }
        let of = |kind| kinds.iter().position(|each| *each == kind);
        match (self.call.row().outcome, of(Kind::Buffer), of(Kind::Iovec)) {
            (Outcome::Bytes, Some(buffer), _) => self.arguments[buffer + 1],
            (Outcome::Bytes, _, Some(_)) => self.result.max(0) as u64,
            // A message, whose buffers stand in memory.
            (Outcome::Bytes, ..) if self.call.streams().is_some() => self.result.max(0) as u64,
            _ => 0,
        }
    }

    fn unplayable(&self) -> Option<String> {
        let (name, bytes) = (self.call.name(), self.buffer());
        if bytes > MOST_MOVED {
            return Some(format!("{name} moves {bytes} bytes in one call; at most {MOST_MOVED} are played"));
        }
        exceeds(self.call, &self.arguments, self.result)
            .map(|size| format!("{name} moved {}, of {size} bytes that it was asked for", self.result))
    }

    /// A transfer of more than a replay moves at once, as one or two that it does; None where that cannot be.
    pub(crate) fn in_parts(mut self) -> Option<(Option<Called>, Called)> {
        if self.buffer() <= MOST_MOVED {
            return Some((None, self));
        }
        if !matches!(self.call.name(), "read" | "write" | "pread64" | "pwrite64") {
            return None;
        }
        let most = MOST_MOVED as i64;
        if self.result <= most {
            self.arguments[2] = MOST_MOVED;
            return Some((None, self));
        }
        let mut first = self.clone();
        (first.arguments[2], first.result, first.duration_ns) = (MOST_MOVED, most, Some(0));
        self.arguments[2] = (self.arguments[2] - MOST_MOVED).min(MOST_MOVED);
        self.result -= most;
        if self.call.name().starts_with('p') {
            self.arguments[3] = self.arguments[3].checked_add(MOST_MOVED)?;
        }
        (self.result <= most).then_some((Some(first), self))
    }
}

/// How many bytes a call was asked for, where it moved more: none does.
pub(crate) fn exceeds(call: Call, arguments: &[u64; 6], result: i64) -> Option<u64> {
    let row = call.row();
    // With MSG_TRUNC a datagram may be longer.
    let transfers = row.outcome == Outcome::Bytes
        && row.moves != Moves::Nothing
        && call.role().is_none()
        && !row.name.starts_with("recv");
    let size = row.arguments.iter().position(|kind| *kind == Kind::Size).filter(|_| transfers)?;
    u64::try_from(result).is_ok_and(|moved| moved > arguments[size]).then_some(arguments[size])
}
