//! What is to be expected of an event, after those before it. Both sides compute it, and only the difference is
//! written.

use etude_calls::{Call, Kind, Outcome};

/// What was last seen in a place.
#[derive(Clone, Copy, Default)]
struct Seen {
    arguments: [u64; 6],
    result: u64,
    /// Codes of the texts' places.
    texts: [u32; 2],
    is: bool,
}

const SLOTS: usize = 1024;

/// The last event of each call, and of each call on each descriptor.
pub struct Predictor {
    of_call: Vec<Seen>,
    of_descriptor: Vec<Seen>,
}

/// What is to be expected of one event; and where what is so is noted.
pub struct Expected {
    pub arguments: [u64; 6],
    result: u64,
    pub texts: [u32; 2],
}

impl Predictor {
    pub fn new() -> Predictor {
        let of_call = vec![Seen::default(); usize::from(Call::MANY) + 1];
        Predictor { of_call, of_descriptor: vec![Seen::default(); SLOTS] }
    }

    /// Forgets all: each chunk is by itself.
    pub fn clear(&mut self) {
        self.of_call.fill(Seen::default());
        self.of_descriptor.fill(Seen::default());
    }

    /// What the first argument will be.
    #[inline]
    pub fn first(&self, call: Call) -> u64 {
        self.of_call[usize::from(call.code())].arguments[0]
    }

    /// All else, once the first argument is known.
    #[inline]
    pub fn rest(&self, call: Call, first: u64) -> Expected {
        let on = &self.of_descriptor[slot(call, first)];
        let seen = if on.is { on } else { &self.of_call[usize::from(call.code())] };
        Expected { arguments: seen.arguments, result: seen.result, texts: seen.texts }
    }

    /// Notes what is so.
    #[inline]
    pub fn learn(&mut self, call: Call, arguments: &[u64; 6], result: i64, texts: [u32; 2]) {
        let seen = Seen { arguments: *arguments, result: result as u64, texts, is: true };
        self.of_call[usize::from(call.code())] = seen;
        self.of_descriptor[slot(call, arguments[0])] = seen;
    }
}

/// Two that fall together are worth less, but not wrong.
#[inline]
fn slot(call: Call, first: u64) -> usize {
    let descriptor = match call.row().arguments.first() {
        Some(Kind::Fd | Kind::DirFd) => first,
        _ => 0,
    };
    (u64::from(call.code()).wrapping_mul(37).wrapping_add(descriptor) % SLOTS as u64) as usize
}

impl Expected {
    /// What the result will be, once all arguments are known.
    #[inline]
    pub fn result(&self, call: Call, arguments: &[u64; 6]) -> u64 {
        let row = call.row();
        match row.outcome {
            Outcome::Bytes => match row.arguments.iter().position(|kind| *kind == Kind::Size) {
                Some(size) => arguments[size],
                None => self.result,
            },
            // To a place that is given.
            Outcome::Offset if arguments[2] == 0 => arguments[1],
            _ => self.result,
        }
    }
}
