//! Locks of `flock` on one file: they are had one after the other as they were, and given back before others have them.

use super::Point;

#[derive(Debug)]
struct Held {
    /// Locks belong to what was opened, not to descriptors or processes.
    description: usize,
    exclusive: bool,
    taken: Point,
    released: Option<Point>,
}

/// Who has and had the locks of a file.
#[derive(Debug, Default)]
pub struct Locks {
    held: Vec<Held>,
    /// Those that were refused since the last release: they come before the next.
    refused: Vec<Point>,
}

impl Locks {
    fn against(&self, description: usize, exclusive: bool) -> impl Iterator<Item = &Held> {
        let against = move |held: &&Held| held.description != description && (exclusive || held.exclusive);
        self.held.iter().filter(against)
    }

    pub fn free(&self, description: usize, exclusive: bool) -> bool {
        self.against(description, exclusive).all(|held| held.released.is_some())
    }

    /// `others` are those that come before it. Who had to wait then waits in the kernel now: the lock has to be taken
    /// before, not given back.
    pub fn take(&mut self, here: Point, description: usize, exclusive: bool, others: &mut Vec<Point>) {
        self.release(here, description, others);
        others.extend(self.against(description, exclusive).map(|held| match held.released {
            Some(released) if released.step < here.step => released,
            _ => held.taken,
        }));
        if exclusive {
            // Who comes later comes after this one.
            self.held.retain(|held| held.released.is_none());
        }
        self.held.push(Held { description, exclusive, taken: here, released: None });
    }

    /// A lock that could not be had.
    pub fn refuse(&mut self, here: Point, description: usize, exclusive: bool, others: &mut Vec<Point>) {
        let now = self.against(description, exclusive).filter(|held| held.released.is_none());
        others.extend(now.map(|held| held.taken));
        self.refused.push(here);
    }

    pub fn release(&mut self, here: Point, description: usize, others: &mut Vec<Point>) {
        let own = |held: &&mut Held| held.description == description && held.released.is_none();
        if let Some(held) = self.held.iter_mut().find(own) {
            held.released = Some(here);
            others.append(&mut self.refused);
        }
    }
}
