//! Texts that were met before, so that each is written once.

use std::collections::HashMap;
use std::sync::Arc;

/// Above this many bytes, or texts, a dictionary begins anew.
const MOST_BYTES: usize = 1 << 24;
const MOST_TEXTS: usize = 1 << 18;

/// What a chunk may add to that, and more: a dictionary that is larger was written by somebody else.
const ANY_BYTES: usize = 1 << 26;
const ANY_TEXTS: usize = 1 << 20;

/// The texts of a file, in the order in which they came.
#[derive(Default)]
pub struct Dictionary {
    texts: Vec<Arc<[u8]>>,
    bytes: usize,
}

impl Dictionary {
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn get(&self, index: usize) -> Option<&Arc<[u8]>> {
        self.texts.get(index)
    }

    pub fn push(&mut self, text: Arc<[u8]>) {
        self.bytes += text.len();
        self.texts.push(text);
    }

    pub fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES || self.texts.len() > MOST_TEXTS
    }

    /// Whether no writer would have gone on with it.
    pub fn is_impossible(&self) -> bool {
        self.bytes > ANY_BYTES || self.texts.len() > ANY_TEXTS
    }

    pub fn clear(&mut self) {
        (self.texts, self.bytes) = (Vec::new(), 0);
    }
}

/// A dictionary that is being written.
#[derive(Default)]
pub struct Known {
    pub all: Dictionary,
    places: HashMap<Arc<[u8]>, u32>,
}

impl Known {
    /// Where a text stands; None if it is new, and then stands behind all others.
    pub fn place(&mut self, text: &Arc<[u8]>) -> Option<usize> {
        if let Some(place) = self.places.get(&text[..]) {
            return Some(*place as usize);
        }
        self.places.insert(text.clone(), self.all.len() as u32);
        self.all.push(text.clone());
        None
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.places.clear();
    }
}
