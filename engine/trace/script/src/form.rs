//! Which arguments of a call a script has, and what each may be.

use etude_calls::{Call, Kind, Processor};

use crate::model::Called;

/// Whether an argument of this kind stands in a script: where data stand in memory does not.
pub fn shown(kind: Kind) -> bool {
    !matches!(kind, Kind::Buffer | Kind::Pointer | Kind::Iovec | Kind::Unused | Kind::Command)
}

/// The next argument from `index` on that a script has, given those before it.
pub fn next_shown(call: Call, arguments: &[u64; 6], index: usize) -> Option<(usize, Kind)> {
    (index..call.used(arguments))
        .map(|index| (index, call.kind(arguments, index)))
        .find(|(_, kind)| shown(*kind))
}

impl Called {
    /// The text of an argument.
    pub fn text(&self, argument: usize) -> Option<&[u8]> {
        self.texts.iter().find(|text| usize::from(text.argument) == argument).map(|text| &text.bytes[..])
    }

    /// What is wrong with it, if it cannot be written and read again as it is.
    pub fn wrong(&self) -> Option<String> {
        let name = self.call.name();
        let mut normal = self.arguments;
        let kind = |index| self.call.kind(&self.arguments, index);
        (0..6).filter(|index| !shown(kind(*index))).for_each(|index| normal[index] = 0);
        self.call.normalise(Processor::X86_64, &mut normal);
        if let Some(index) = (0..6).find(|index| normal[*index] != self.arguments[*index]) {
            return Some(format!("argument {} of {name} is {:#x}", index + 1, self.arguments[index]));
        }
        let mut before = None;
        for text in &self.texts {
            let index = usize::from(text.argument);
            let fits = match kind(index) {
                Kind::Path | Kind::Name => !text.bytes.contains(&0),
                Kind::Pair | Kind::OffsetAt | Kind::Range | Kind::Socket => true,
                _ => false,
            };
            let used = index < self.call.used(&self.arguments) && self.arguments[index] == 0;
            if !fits || !used || before >= Some(index) {
                return Some(format!("argument {} of {name} has a text that it cannot have", index + 1));
            }
            before = Some(index);
        }
        None
    }
}
