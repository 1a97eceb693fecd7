//! The descriptors of one process.

use std::collections::{BTreeMap, VecDeque};

use smallvec::SmallVec;

use crate::changes::DescriptorChange;

/// A descriptor: what stands behind it, and whether an exec closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot<S> {
    pub behind: S,
    pub closes_at_exec: bool,
}

/// The treatment of a number that is given anew while it is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Calls come in the order in which they took effect: the close of what was there is missing.
    #[default]
    Replaces,
    /// Calls come in the order in which they began: where two threads close and open, the open can be first. The older
    /// one stays until its close, which is that of the oldest.
    Waits,
}

/// All descriptors of a process, by their numbers.
#[derive(Clone, Debug)]
pub struct Table<S> {
    slots: BTreeMap<i32, VecDeque<Slot<S>>>,
    reuse: Reuse,
}

/// Slots that a change took away.
pub type Closed<S> = SmallVec<[(i32, Slot<S>); 1]>;

impl<S: Clone> Table<S> {
    pub fn new(reuse: Reuse) -> Table<S> {
        Table { slots: BTreeMap::new(), reuse }
    }

    /// The description of a descriptor: of several the youngest.
    pub fn get(&self, descriptor: i32) -> Option<&Slot<S>> {
        self.slots.get(&descriptor)?.back()
    }

    pub fn get_mut(&mut self, descriptor: i32) -> Option<&mut Slot<S>> {
        self.slots.get_mut(&descriptor)?.back_mut()
    }

    /// All that is open, by number, of one number the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &Slot<S>)> {
        self.slots.iter().flat_map(|(number, slots)| slots.iter().map(|slot| (*number, slot)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (i32, &mut Slot<S>)> {
        self.slots.iter_mut().flat_map(|(number, slots)| slots.iter_mut().map(|slot| (*number, slot)))
    }

    /// The numbers that are open.
    pub fn numbers(&self) -> impl Iterator<Item = i32> {
        self.slots.keys().copied()
    }

    /// The open descriptors in a range of numbers.
    pub fn range(&self, first: i32, last: i32) -> impl Iterator<Item = (i32, &Slot<S>)> {
        let range = (first <= last).then(|| self.slots.range(first..=last));
        range.into_iter().flatten().flat_map(|(number, slots)| slots.iter().map(|slot| (*number, slot)))
    }

    /// A descriptor stands for something new; returned is what it stood for, where that is replaced.
    pub fn open(&mut self, descriptor: i32, behind: S, closes_at_exec: bool) -> Closed<S> {
        let replaced = match self.reuse {
            Reuse::Replaces => self.close_all(descriptor, descriptor),
            Reuse::Waits => Closed::new(),
        };
        self.slots.entry(descriptor).or_default().push_back(Slot { behind, closes_at_exec });
        replaced
    }

    pub fn close(&mut self, descriptor: i32) -> Option<Slot<S>> {
        let slots = self.slots.get_mut(&descriptor)?;
        let slot = slots.pop_front();
        if slots.is_empty() {
            self.slots.remove(&descriptor);
        }
        slot
    }

    /// The process executes a program.
    pub fn exec(&mut self) -> Closed<S> {
        let mut closed = Closed::new();
        for (number, slots) in &mut self.slots {
            slots.retain(|slot| {
                if slot.closes_at_exec {
                    closed.push((*number, slot.clone()));
                }
                !slot.closes_at_exec
            });
        }
        self.slots.retain(|_, slots| !slots.is_empty());
        closed
    }

    /// Does what a call did, but for opening something new; what it closed.
    pub fn apply(&mut self, change: &DescriptorChange) -> Closed<S> {
        match *change {
            DescriptorChange::Copies { from, to, replaces, closes_at_exec } => {
                let behind = self.get(from).map(|slot| slot.behind.clone());
                let mut closed = if replaces { self.close_all(to, to) } else { Closed::new() };
                match behind {
                    Some(behind) => closed.extend(self.open(to, behind, closes_at_exec)),
                    None if self.reuse == Reuse::Replaces => closed.extend(self.close_all(to, to)),
                    None => {}
                }
                closed
            }
            DescriptorChange::Closes(descriptor) => {
                self.close(descriptor).map(|slot| (descriptor, slot)).into_iter().collect()
            }
            DescriptorChange::ClosesRange { first, last } => self.close_all(first, last),
            DescriptorChange::MarksRange { first, last } => {
                self.mark(first, last, true);
                Closed::new()
            }
            DescriptorChange::Marks { descriptor, closes_at_exec } => {
                self.mark(descriptor, descriptor, closes_at_exec);
                Closed::new()
            }
            _ => Closed::new(),
        }
    }

    fn close_all(&mut self, first: i32, last: i32) -> Closed<S> {
        let those: SmallVec<[i32; 4]> = self.slots.range(first..=last).map(|(number, _)| *number).collect();
        let all = those.into_iter().filter_map(|number| Some((number, self.slots.remove(&number)?)));
        all.flat_map(|(number, slots)| slots.into_iter().map(move |slot| (number, slot))).collect()
    }

    fn mark(&mut self, first: i32, last: i32, closes_at_exec: bool) {
        let slots = self.slots.range_mut(first..=last).flat_map(|(_, slots)| slots);
        slots.for_each(|slot| slot.closes_at_exec = closes_at_exec);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_given_anew_before_its_close_waits_for_that_in_the_order_of_beginnings() {
        for (reuse, left) in [(Reuse::Waits, Some(2)), (Reuse::Replaces, None)] {
            let mut table = Table::new(reuse);
            table.open(3, 1, false);
            table.open(3, 2, false);
            table.apply(&DescriptorChange::Closes(3));
            assert_eq!(table.get(3).map(|slot| slot.behind), left, "{reuse:?}");
        }
    }

    #[test]
    fn a_copy_of_what_is_not_known_leaves_nothing() {
        let mut table = Table::new(Reuse::Replaces);
        table.open(3, 1, false);
        let copy = DescriptorChange::Copies { from: 9, to: 3, replaces: true, closes_at_exec: false };
        assert_eq!(table.apply(&copy).len(), 1);
        assert_eq!(table.numbers().count(), 0);
    }
}
