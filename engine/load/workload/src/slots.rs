//! Things that come and go: which are there.

use crate::random::Random;

/// Numbered slots, each of them taken or free; what comes takes any free one, what goes leaves any taken one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    taken: Vec<usize>,
    free: Vec<usize>,
}

impl Slots {
    pub fn new(numbers: impl Iterator<Item = (usize, bool)>) -> Slots {
        let mut slots = Slots::default();
        numbers.for_each(
            |(number, there)| if there { slots.taken.push(number) } else { slots.free.push(number) },
        );
        slots
    }

    pub fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.free.is_empty()
    }

    /// Whether something comes next, or goes. Both are equally likely where the share that is aimed at is taken; above it
    /// something rather goes, below it something rather comes, as in Ehrenfest's urns: what is there stays around that share.
    pub fn comes(&self, aim: f64, random: &mut Random) -> bool {
        let (push, pull) = (self.free.len() as f64 * aim, self.taken.len() as f64 * (1.0 - aim));
        random.unit() * (push + pull) < push
    }

    /// Takes a free slot.
    pub fn take(&mut self, random: &mut Random) -> Option<usize> {
        let number = swap_out(&mut self.free, random)?;
        self.taken.push(number);
        Some(number)
    }

    /// Leaves a taken slot, rather one that may be left: eight are tried.
    pub fn leave(&mut self, random: &mut Random, may: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = 0;
        for _ in 0..8 {
            at = random.below(self.taken.len() as u64) as usize;
            if self.taken.get(at).is_some_and(|number| may(*number)) {
                break;
            }
        }
        let number = (at < self.taken.len()).then(|| self.taken.swap_remove(at))?;
        self.free.push(number);
        Some(number)
    }

    /// One that is taken is left for one that is free: which for which.
    pub fn exchange(&mut self, random: &mut Random) -> Option<(usize, usize)> {
        let (from, to) = (random.below(self.taken.len() as u64), random.below(self.free.len() as u64));
        let (from, to) = (self.taken.get_mut(from as usize)?, self.free.get_mut(to as usize)?);
        std::mem::swap(from, to);
        Some((*to, *from))
    }
}

fn swap_out(numbers: &mut Vec<usize>, random: &mut Random) -> Option<usize> {
    let at = random.below(numbers.len() as u64) as usize;
    (at < numbers.len()).then(|| numbers.swap_remove(at))
}
