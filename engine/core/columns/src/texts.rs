//! Texts as numbers: each is kept once.

use std::collections::HashMap;

/// Texts in the order in which they came. Code 0 stands for null, n for the n-th of them.
#[derive(Default)]
pub struct Texts {
    codes: HashMap<Box<str>, u32>,
    all: Vec<Box<str>>,
}

impl Texts {
    /// The code of a text, which is new or known.
    pub fn code(&mut self, text: &str) -> u32 {
        if let Some(&code) = self.codes.get(text) {
            return code;
        }
        self.all.push(text.into());
        let code = u32::try_from(self.all.len()).expect("fewer texts than codes");
        self.codes.insert(text.into(), code);
        code
    }

    /// All of them, that of code 1 first.
    pub fn all(&self) -> &[Box<str>] {
        &self.all
    }

    /// As `all`, at the end.
    pub fn into_all(self) -> Vec<Box<str>> {
        self.all
    }
}
