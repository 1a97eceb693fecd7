//! What several scripts call the same, though it is not: files that each of them makes, and words of memory that are
//! common to its own processes, and connections between them.

use std::collections::{HashMap, HashSet};

use etude_calls::{Futex, Kind};

use crate::model::{Action, Called, Needed, Script, What};

/// What names of temporary files begin with (`names.rs`, `cut.rs`); a number follows.
const TEMPORARY: [&[u8]; 2] = [b"etude_tmp", b"etude_cut"];

/// The other names of one script.
#[derive(Default)]
pub struct Apart {
    /// Of temporary files, which another script has.
    names: HashMap<Vec<u8>, Vec<u8>>,
    /// What is added to the number of a common word.
    words: u64,
    /// What stands before the name of a connection.
    connections: String,
}

/// For each script, so that none meets what is another's. Where all are in one directory (`shared`), the first script with
/// a name keeps it.
pub fn apart(scripts: &[&Script], shared: bool) -> Vec<Apart> {
    let mut all: Vec<Apart> = Vec::new();
    let mut words = 0_u64;
    for (number, script) in (1..).zip(scripts) {
        let connections = format!("{number}.");
        all.push(Apart { words, connections, ..Apart::default() });
        words = words.wrapping_add(called(script).filter_map(common_word).max().unwrap_or(0));
    }
    if !shared {
        return all;
    }
    let own: Vec<Vec<&[u8]>> = scripts.iter().map(|script| temporary(script)).collect();
    let mut taken: HashSet<Vec<u8>> = own.iter().flatten().map(|name| name.to_vec()).collect();
    let (mut met, mut number) = (HashSet::new(), 0_u64);
    for (names, apart) in own.iter().zip(&mut all) {
        for name in names.iter().filter(|name| met.contains(**name)) {
            let new = loop {
                number += 1;
                let new = [TEMPORARY[0], number.to_string().as_bytes()].concat();
                if taken.insert(new.clone()) {
                    break new;
                }
            };
            apart.names.insert(name.to_vec(), new);
        }
        met.extend(names.iter().map(|name| name.to_vec()));
    }
    all
}

impl Apart {
    pub fn action(&self, mut action: Action) -> Action {
        if let Action::Call(called) = &mut action {
            if common_word(called).is_some() {
                called.arguments[0] = called.arguments[0].wrapping_add(self.words);
            }
            for text in &mut called.texts {
                match called.call.kind(&called.arguments, text.argument.into()) {
                    Kind::Path => self.rename(&mut text.bytes),
                    Kind::Socket => text.bytes = [self.connections.as_bytes(), &text.bytes].concat().into(),
                    _ => {}
                }
            }
        }
        action
    }

    pub fn needed(&self, needed: &[Needed]) -> Vec<Needed> {
        let mut needed = needed.to_vec();
        for each in &mut needed {
            self.rename(&mut each.path);
            if let What::Link(to) | What::HardLink(to) = &mut each.what {
                self.rename(to);
            }
        }
        needed
    }

    fn rename(&self, path: &mut std::sync::Arc<[u8]>) {
        if self.names.is_empty() || !components(path).any(|part| self.names.contains_key(part)) {
            return;
        }
        let parts = components(path).map(|part| self.names.get(part).map_or(part, Vec::as_slice));
        *path = parts.collect::<Vec<_>>().join(&b'/').into();
    }
}

fn called(script: &Script) -> impl Iterator<Item = &Called> {
    script.steps.iter().filter_map(|step| match &step.action {
        Action::Call(called) => Some(called),
        _ => None,
    })
}

/// The word of a futex that several processes may use.
fn common_word(called: &Called) -> Option<u64> {
    let common = Futex::of(called.call, &called.arguments).is_some() && !Futex::is_private(&called.arguments);
    common.then_some(called.arguments[0])
}

/// The names of temporary files in a script's paths, each once.
fn temporary(script: &Script) -> Vec<&[u8]> {
    let named = called(script).flat_map(|called| {
        let paths = |index| called.call.kind(&called.arguments, index) == Kind::Path;
        called.texts.iter().filter(move |text| paths(text.argument.into())).map(|text| &text.bytes)
    });
    let needed = script.needed.iter().map(|each| &each.path);
    let mut names: Vec<&[u8]> =
        named.chain(needed).flat_map(|path| components(path)).filter(|part| is_temporary(part)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn is_temporary(name: &[u8]) -> bool {
    let number = TEMPORARY.iter().find_map(|begin| name.strip_prefix(*begin));
    number.is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit))
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
}
