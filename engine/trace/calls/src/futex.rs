//! Calls of futex(2), as waits and wakes.

use crate::Call;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Futex {
    /// Waits until another thread wakes it, or ends.
    Wait,
    Wake,
}

impl Futex {
    /// None where it is no such call, or does neither. Argument 1 is the operation.
    pub fn of(call: Call, arguments: &[u64; 6]) -> Option<Futex> {
        const FLAGS: u64 = 128 | 256;
        if call.name() != "futex" {
            return None;
        }
        match arguments[1] & !FLAGS {
            // WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2
            0 | 6 | 9 | 11 | 13 => Some(Futex::Wait),
            // WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, UNLOCK_PI, WAKE_BITSET, CMP_REQUEUE_PI
            1 | 3 | 4 | 5 | 7 | 10 | 12 => Some(Futex::Wake),
            _ => None,
        }
    }

    /// Whether only threads of one process use the word.
    pub fn is_private(arguments: &[u64; 6]) -> bool {
        arguments[1] & 128 != 0
    }
}
