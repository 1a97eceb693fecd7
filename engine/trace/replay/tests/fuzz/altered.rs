//! Traces whose events are altered before they are written: all of them can be read.

use etude_calls::Call;
use etude_trace::{Event, Text};

use crate::drawn;
use crate::random::Random;
use crate::seeds::Noted;

pub fn events(random: &mut Random, noted: &mut Noted, other: &Noted) {
    for _ in 0..1 + random.below(6) {
        let place = random.below(noted.chunks.len());
        let (thread, chunk) = &mut noted.chunks[place];
        let at = random.below(chunk.len());
        match random.below(12) {
            0 => *thread = if random.one_in(4) { random.number() as u32 } else { random.below(4) as u32 },
            1 => drop(chunk.remove(at)),
            2 => {
                let (_, theirs) = random.of(&other.chunks);
                chunk.insert(at, random.of(theirs).clone());
            }
            3 => {
                let other = random.below(chunk.len());
                chunk.swap(at, other);
            }
            4 => {
                let again = chunk[at].clone();
                chunk.extend(std::iter::repeat_n(again, 1 + random.below(30)));
            }
            5 => {
                let called = drawn::called(random);
                let event = &mut chunk[at];
                event.call = called.call;
                (event.arguments, event.texts, event.result) =
                    (called.arguments, called.texts, called.result);
            }
            _ => alter(random, &mut chunk[at]),
        }
        if noted.chunks[place].1.is_empty() {
            return;
        }
    }
}

fn alter(random: &mut Random, event: &mut Event) {
    let near = random.below(8) as u64;
    match random.below(8) {
        0 => event.start_ns = random.number(),
        1 => event.duration_ns = random.number(),
        2 => event.result = random.number() as i64,
        3 => event.result = near as i64 - 2,
        4 => event.arguments[random.below(6)] = random.number(),
        5 => event.arguments[random.below(3)] = near,
        6 => event.call = Call::from_code(1 + random.below(Call::MANY.into()) as u16).expect("a code"),
        _ => {
            let argument = random.below(6) as u8;
            event.texts.retain(|text| text.argument != argument);
            let bytes = drawn::path(random).into();
            let place = event.texts.iter().take_while(|text| text.argument < argument).count();
            event.texts.insert(place, Text { argument, bytes });
        }
    }
}
