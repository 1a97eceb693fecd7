//! What the files of a trace are called in a script.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::from_trace::tree::{Path, components, parent};
use crate::hash::Hasher;

/// Directories that are alike on all machines: they keep their names.
const STANDARD: [&str; 10] = ["usr", "lib", "etc", "proc", "dev", "sys", "bin", "sbin", "opt", "var"];

/// Whether the name of a directory at the top is that of one on all machines.
pub(crate) fn is_standard(name: &[u8]) -> bool {
    STANDARD.iter().any(|standard| standard.as_bytes() == name)
}

const CREATED: &[u8] = b"etude_tmp";

/// Why a file has another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The directory in front of it is left out.
    Stripped,
    /// As `--map` wants it.
    Mapped,
    /// The program made it.
    Created,
    Hashed,
}

/// A name that is not the original's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitution {
    pub original: Arc<[u8]>,
    pub name: Arc<[u8]>,
    pub why: Why,
}

/// Gives names, the same ones each time.
pub(crate) struct Names<'a> {
    pub cwd: Path,
    pub maps: &'a [(Vec<u8>, Vec<u8>)],
    pub keep: bool,
    /// All paths that the trace names.
    pub used: HashSet<Path>,
    /// Those at which it made something, and nothing was before.
    pub created: HashSet<Path>,
    /// Directories that had other names before or after.
    pub renamed: HashSet<Path>,
    pub hasher: Option<Hasher>,
    /// Names that a directory of the replay's root has already.
    taken: HashSet<Vec<u8>>,
    given: HashMap<Path, (Path, Why)>,
    many: u64,
    pub substitutions: Vec<Substitution>,
}

impl<'a> Names<'a> {
    pub fn new(cwd: Path, maps: &'a [(Vec<u8>, Vec<u8>)], used: HashSet<Path>) -> Names<'a> {
        let mut taken: HashSet<Vec<u8>> = STANDARD.iter().map(|name| name.as_bytes().to_vec()).collect();
        let first = |path: &[u8]| components(path).next().map(<[u8]>::to_vec);
        taken.extend(used.iter().filter_map(|path| first(below(path, &cwd)?)));
        taken.extend(maps.iter().filter_map(|(_, to)| first(to)));
        // So that no file gets the name of one that has such a name by itself.
        let made = used.iter().filter_map(|path| path.rsplit(|byte| *byte == b'/').next());
        taken.extend(made.filter(|name| name.starts_with(CREATED)).map(<[u8]>::to_vec));
        let (created, renamed, given) = (HashSet::new(), HashSet::new(), HashMap::new());
        let (keep, hasher, many, substitutions) = (false, None, 0, Vec::new());
        Names { cwd, maps, keep, used, created, renamed, hasher, taken, given, many, substitutions }
    }

    /// The path in the script, from the root of the replay on: `.` for that itself.
    pub fn name(&mut self, path: &Path) -> Path {
        let (name, _) = self.plain(path);
        match &mut self.hasher {
            Some(hasher) => hasher.path(&name),
            None => name,
        }
    }

    /// What stands in a link at `link` that leads to `target`: relative, so that it stays within the replay's root.
    pub fn target(&mut self, link: &Path, target: &Path) -> Path {
        let (link, target) = (self.name(link), self.name(target));
        let (from, to): (Vec<_>, Vec<_>) = (components(&link).collect(), components(&target).collect());
        let from = &from[..from.len().saturating_sub(1)];
        let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let up = std::iter::repeat_n(&b".."[..], from.len() - same);
        let parts: Vec<&[u8]> = up.chain(to[same..].iter().copied()).collect();
        if parts.is_empty() { b"."[..].into() } else { parts.join(&b'/').into() }
    }

    fn plain(&mut self, path: &Path) -> (Path, Why) {
        if let Some(given) = self.given.get(path) {
            return given.clone();
        }
        let (name, why, changed) = self.make(path);
        let name: Path = if name.is_empty() { b"."[..].into() } else { name.into() };
        self.given.insert(path.clone(), (name.clone(), why));
        if changed && self.hasher.is_none() {
            self.substitutions.push(Substitution { original: path.clone(), name: name.clone(), why });
        }
        (name, why)
    }

    /// The name, why it is another one, and whether that begins here.
    fn make(&mut self, path: &Path) -> (Vec<u8>, Why, bool) {
        let mapped = self.maps.iter().find(|(from, _)| **from == **path);
        if let Some((_, to)) = mapped {
            return (components(to).collect::<Vec<_>>().join(&b'/'), Why::Mapped, true);
        }
        let Some(directory) = parent(path) else { return (Vec::new(), Why::Stripped, false) };
        if *path == self.cwd {
            return (Vec::new(), Why::Stripped, false);
        }
        let own = &path[directory.len().max(1) + usize::from(directory.len() > 1)..];
        if directory == b"/" && is_standard(own) {
            return (own.to_vec(), Why::Stripped, false);
        }
        let created = !self.keep && self.created.contains(path) && !self.moves_along(path);
        if !self.placed(directory) {
            // Nothing above it is used: the directories in front of it are left out.
            let name = if created { self.tmp(own) } else { self.free(own) };
            return (name, if created { Why::Created } else { Why::Stripped }, true);
        }
        let (above, why) = self.plain(&directory.into());
        let name = if created { self.tmp(own) } else { own.to_vec() };
        let why = if created { Why::Created } else { why };
        let changed = name != own;
        (if &above[..] == b"." { name } else { [&above, &b"/"[..], &name].concat() }, why, changed)
    }

    /// Whether a directory has a place in the script: it is used itself, or below one that has.
    fn placed(&self, directory: &[u8]) -> bool {
        let mut at = Some(directory);
        while let Some(path) = at.filter(|path| path.len() > 1) {
            let standard = || is_standard(&path[1..]);
            let mapped = || self.maps.iter().any(|(from, _)| from == path);
            if *path == *self.cwd || self.used.contains(path) || standard() || mapped() {
                return true;
            }
            at = parent(path);
        }
        *self.cwd == *b"/"
    }

    /// Whether it is in a directory that was made or renamed: there all keep their own names, which move with it.
    fn moves_along(&self, path: &[u8]) -> bool {
        let mut at = parent(path);
        while let Some(path) = at {
            if self.created.contains(path) || self.renamed.contains(path) {
                return true;
            }
            at = parent(path);
        }
        false
    }

    fn tmp(&mut self, own: &[u8]) -> Vec<u8> {
        let number = own.strip_prefix(CREATED);
        if number.is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)) {
            return own.to_vec();
        }
        loop {
            self.many += 1;
            let name = [CREATED, self.many.to_string().as_bytes()].concat();
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }

    fn free(&mut self, own: &[u8]) -> Vec<u8> {
        let name = |n: u64| if n < 2 { own.to_vec() } else { [own, format!("_{n}").as_bytes()].concat() };
        let free = (1..).map(name).find(|name| !self.taken.contains(name)).expect("numbers do not end");
        self.taken.insert(free.clone());
        free
    }
}

/// What is left of a path within a directory.
fn below<'a>(path: &'a [u8], directory: &[u8]) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(directory)?;
    if directory == b"/" { Some(rest) } else { rest.strip_prefix(b"/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'a>(cwd: &str, maps: &'a [(Vec<u8>, Vec<u8>)], used: &[&str], created: &[&str]) -> Names<'a> {
        let all = |paths: &[&str]| paths.iter().map(|path| path.as_bytes().into()).collect::<HashSet<Path>>();
        let mut names = Names::new(cwd.as_bytes().into(), maps, all(&[used, created].concat()));
        names.created = all(created);
        names
    }

    fn name(names: &mut Names, path: &str) -> String {
        String::from_utf8(names.name(&path.as_bytes().into()).to_vec()).unwrap()
    }

    #[test]
    fn the_programs_directory_is_left_out_and_standard_ones_stay() {
        let used = ["/home/u/a/b", "/usr/lib/c", "/data/big", "/data2/x/y", "/data2/x", "/etc", "/other/b"];
        let mut all = names("/home/u", &[], &[&used[..], &["/home/u/b"]].concat(), &[]);
        let shown = used.map(|path| name(&mut all, path));
        assert_eq!(shown, ["a/b", "usr/lib/c", "big", "x/y", "x", "etc", "b_2"]);
        assert_eq!(name(&mut all, "/home/u"), ".");
        assert_eq!(name(&mut all, "/"), ".");
        assert_eq!(all.substitutions.len(), 3, "{:?}", all.substitutions);
    }

    #[test]
    fn a_mapped_directory_comes_before_all() {
        let maps = [(b"/home/u/a".to_vec(), b"in/here".to_vec()), (b"/usr".to_vec(), b"sys2".to_vec())];
        let mut all = names("/home/u", &maps, &["/home/u/a/x", "/usr/x"], &[]);
        assert_eq!(["/home/u/a/x", "/usr/x"].map(|path| name(&mut all, path)), ["in/here/x", "sys2/x"]);
    }

    #[test]
    fn what_is_created_gets_a_new_name_unless_it_is_in_a_directory_that_is_created() {
        let created = ["/w/x", "/w/d", "/w/d/f", "/w/s/new", "/tmp/q", "/w/etude_tmp2", "/w/y"];
        let mut all = names("/w", &[], &["/w/s"], &created);
        let shown = created.map(|path| name(&mut all, path));
        let expected = [
            "etude_tmp1",
            "etude_tmp3",
            "etude_tmp3/f",
            "s/etude_tmp4",
            "etude_tmp5",
            "etude_tmp2",
            "etude_tmp6",
        ];
        assert_eq!(shown, expected);
        let mut kept = names("/w", &[], &[], &created);
        kept.keep = true;
        assert_eq!(name(&mut kept, "/w/d/f"), "d/f");
    }

    #[test]
    fn the_target_of_a_link_is_relative() {
        let mut all = names("/w", &[], &["/w/a/l", "/w/b/t", "/w/a/t"], &[]);
        let mut target =
            |link: &str, to: &str| all.target(&link.as_bytes().into(), &to.as_bytes().into()).to_vec();
        assert_eq!(target("/w/a/l", "/w/b/t"), b"../b/t");
        assert_eq!(target("/w/a/l", "/w/a/t"), b"t");
        assert_eq!(target("/w/a/l", "/w"), b"..");
        assert_eq!(target("/w/l", "/w"), b".");
    }

    #[test]
    fn hashed_names_have_nothing_of_the_original() {
        let mut all = names("/w", &[], &["/w/secret/secret.txt", "/w/s"], &[]);
        all.hasher = Some(Hasher::new([7; 16]));
        let shown = name(&mut all, "/w/secret/secret.txt");
        assert_eq!(shown, name(&mut all, "/w/secret/secret.txt"));
        assert!(!shown.contains("secret") && !shown.contains('.') && shown.contains('/'), "{shown}");
        assert!(all.substitutions.is_empty());
    }
}
