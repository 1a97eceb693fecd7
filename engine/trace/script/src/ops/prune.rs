//! What a script does not need.

use std::collections::HashSet;

use crate::model::{Needed, Script, What};
use crate::world::{World, key};

/// Leaves out of what is needed all that no step meets, and that is not above what one names. What lies beside in a directory that is listed stays: its
/// names are read.
pub fn prune(script: &mut Script) {
    let mut world = World::new(script);
    // Where a name stood at the beginning: steps may rename it.
    let start: Vec<_> = script.needed.iter().map(|needed| world.names.find(&key(&needed.path))).collect();
    let above: Vec<_> =
        script.needed.iter().map(|needed| world.names.find(above_of(&key(&needed.path)))).collect();
    let mut holding = HashSet::new();
    for step in &script.steps {
        for path in world.step(step).paths {
            holding.extend(world.names.find(above_of(&key(&path))));
        }
    }
    let wanted: Vec<bool> = start
        .iter()
        .zip(&above)
        .map(|(node, above)| {
            let used = node.is_none_or(|node| world.names.node(node).used || holding.contains(&node));
            used || above.is_some_and(|above| world.names.node(above).listed)
        })
        .collect();
    let mut wanted = with_links(&script.needed, wanted).into_iter();
    script.needed.retain(|_| wanted.next().unwrap_or(true));
}

/// The directory in which a name stands; empty for the root.
fn above_of(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|byte| *byte == b'/').unwrap_or(0)]
}

/// Links that lead to what is wanted, or to where that is: a step may go through them. Others may lead to them in turn.
fn with_links(needed: &[Needed], mut wanted: Vec<bool>) -> Vec<bool> {
    let mut places: HashSet<Vec<u8>> = HashSet::new();
    let add = |places: &mut HashSet<Vec<u8>>, path: &[u8]| {
        let path = key(path);
        let above = (0..path.len()).filter(|at| path[*at] == b'/').map(|at| path[..at].to_vec());
        places.extend(above.collect::<Vec<_>>());
        places.insert(path);
    };
    needed
        .iter()
        .zip(&wanted)
        .filter(|(_, wanted)| **wanted)
        .for_each(|(each, _)| add(&mut places, &each.path));
    let mut more = true;
    while std::mem::take(&mut more) {
        for (each, wanted) in needed.iter().zip(&mut wanted).filter(|(_, wanted)| !**wanted) {
            let What::Link(to) = &each.what else { continue };
            let base = if to.starts_with(b"/") { &[][..] } else { above_of(&each.path) };
            if places.contains(&key(&[base, b"/", to].concat())) {
                (*wanted, more) = (true, true);
                add(&mut places, &each.path);
            }
        }
    }
    wanted
}
