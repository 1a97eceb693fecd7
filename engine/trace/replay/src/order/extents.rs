//! Uses of a file's bytes, for who has to wait for whom.

use std::collections::BTreeMap;

use super::waits::Point;

/// Who has written and read which bytes of a file last.
#[derive(Debug, Default)]
pub struct Extents(BTreeMap<u64, Extent>);

#[derive(Debug, Clone)]
struct Extent {
    end: u64,
    writer: Option<Point>,
    readers: Vec<Point>,
}

impl Extents {
    /// Notes a use; `others` are those that come before it.
    pub fn touch(&mut self, here: Point, from: u64, to: u64, writes: bool, others: &mut Vec<Point>) {
        if from >= to {
            return;
        }
        self.cut(from);
        self.cut(to);
        let (mut at, mut gaps) = (from, Vec::new());
        for (start, extent) in self.0.range_mut(from..to) {
            if at < *start {
                gaps.push((at, *start));
            }
            at = extent.end;
            others.extend(extent.writer);
            if writes {
                others.append(&mut extent.readers);
                extent.writer = Some(here);
            } else {
                match extent.readers.iter_mut().find(|reader| reader.thread == here.thread) {
                    Some(reader) => *reader = here,
                    None => extent.readers.push(here),
                }
            }
        }
        if at < to {
            gaps.push((at, to));
        }
        if writes {
            // One extent in place of all.
            let starts: Vec<u64> = self.0.range(from..to).map(|(start, _)| *start).collect();
            starts.iter().for_each(|start| drop(self.0.remove(start)));
            self.0.insert(from, Extent { end: to, writer: Some(here), readers: Vec::new() });
        } else {
            for (start, end) in gaps {
                self.0.insert(start, Extent { end, writer: None, readers: vec![here] });
            }
        }
    }

    /// Makes a boundary there.
    fn cut(&mut self, at: u64) {
        if let Some((_, extent)) = self.0.range_mut(..at).next_back()
            && extent.end > at
        {
            let mut behind = extent.clone();
            extent.end = at;
            behind.end = behind.end.max(at);
            self.0.insert(at, behind);
        }
    }
}
