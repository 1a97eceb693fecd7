//! Waiting for something that others do: requests, which are handed over to io_uring or aio and whose completions are
//! taken later (both are rows of the table, though no calls of their own), and futexes, by which threads wait for each other.

use crate::Call;

/// The interface of the kernel that takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interface {
    /// A queue is a ring, by its descriptor.
    Uring,
    /// A queue is a context, by its address.
    Aio,
}

/// A row's part in asynchronous I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A request. Its queue is argument 1; `tag`: the argument by which it is known until it is done, in front of its
    /// flags.
    Request { interface: Interface, tag: usize },
    /// A call that hands over what its thread has requested, or waits for what is done, or both. Argument 0 is the queue.
    Handover { interface: Interface },
    /// The program takes a completion: of a queue (0), by the request's tag (1).
    Completion { interface: Interface },
}

impl Call {
    /// None where it has nothing to do with requests.
    pub fn role(self) -> Option<Role> {
        use Interface::{Aio, Uring};
        Some(match self.name() {
            "sqe_read" | "sqe_write" => Role::Request { interface: Uring, tag: 4 },
            "sqe_fsync" | "sqe_fdatasync" | "sqe_other" => Role::Request { interface: Uring, tag: 2 },
            "iocb_read" | "iocb_write" => Role::Request { interface: Aio, tag: 4 },
            "iocb_fsync" | "iocb_fdatasync" | "iocb_other" => Role::Request { interface: Aio, tag: 2 },
            "io_uring_enter" => Role::Handover { interface: Uring },
            "io_submit" | "io_getevents" | "io_pgetevents" => Role::Handover { interface: Aio },
            "cqe" => Role::Completion { interface: Uring },
            "io_event" => Role::Completion { interface: Aio },
            _ => return None,
        })
    }

    /// Whether it is a request whose kind is not known.
    pub fn is_unknown_request(self) -> bool {
        matches!(self.name(), "sqe_other" | "iocb_other")
    }
}

/// A call of futex(2), as a wait or a wake.
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

    /// True if only threads of one process use the word.
    pub fn is_private(arguments: &[u64; 6]) -> bool {
        arguments[1] & 128 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Set};

    #[test]
    fn tags_stand_in_front_of_flags() {
        for call in Call::all() {
            let arguments = call.row().arguments;
            match call.role() {
                Some(Role::Request { tag, .. }) => {
                    assert_eq!(arguments[tag], Kind::Address, "{call:?}");
                    assert_eq!(arguments[tag + 1], Kind::Flags(Set::Request), "{call:?}");
                    assert_eq!(arguments[0] == Kind::Fd, !call.is_unknown_request(), "{call:?}");
                }
                Some(Role::Handover { .. }) => assert!(call.row().x86_64.is_some(), "{call:?}"),
                Some(Role::Completion { .. }) => assert_eq!(arguments.len(), 2, "{call:?}"),
                None => assert!(!call.name().starts_with("sqe_") && !call.name().starts_with("iocb_")),
            }
        }
    }
}
