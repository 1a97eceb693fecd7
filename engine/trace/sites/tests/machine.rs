//! Programs of this machine: every `syscall` that objdump finds is found, no other, and none of the sites is entered.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use etude_sites::{Elf, Layout, Scan, Why, scan_within};
use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind};

/// What was found in a program.
#[derive(Default)]
struct Found {
    scan: Scan,
    bytes: usize,
    seconds: f64,
}

impl Found {
    fn calls(&self) -> BTreeSet<u64> {
        let sites = self.scan.sites.iter().map(|site| site.call);
        sites.chain(self.scan.left.iter().map(|left| left.call)).collect()
    }

    /// How many can be patched of those that may be.
    fn share(&self) -> f64 {
        let stay = self.scan.left.iter().filter(|left| left.why != Why::Never).count();
        self.scan.sites.len() as f64 / (self.scan.sites.len() + stay) as f64
    }

    fn print(&self, path: &Path) {
        let (mut forms, mut whys) = (BTreeMap::new(), BTreeMap::new());
        self.scan.sites.iter().for_each(|site| *forms.entry(site.form).or_insert(0) += 1);
        self.scan.left.iter().for_each(|left| *whys.entry(left.why).or_insert(0) += 1);
        let known = self.scan.sites.iter().filter(|site| site.number.is_some()).count();
        println!(
            "{}: {} of {} ({known} numbers known) {forms:?} {whys:?}; {:.2} MB, {:.2} ms, {:.2} ms/MB",
            path.display(),
            self.scan.sites.len(),
            self.calls().len(),
            self.bytes as f64 / 1e6,
            self.seconds * 1e3,
            self.seconds * 1e9 / self.bytes as f64,
        );
    }
}

/// Scans a program's code as it is in its file; None where it is no ELF image of 64 bits.
fn scan_file(path: &Path) -> Option<Found> {
    let file = File::open(path).ok()?;
    let elf = Elf::read(Layout::File, |at, into| file.read_exact_at(into, at)).ok()?;
    let mut found = Found::default();
    for segment in &elf.segments {
        let mut code = vec![0; segment.length as usize];
        file.read_exact_at(&mut code, segment.offset).unwrap();
        let within = elf.sections.iter().filter(|part| segment.offsets().contains(&part.offset));
        let parts: Vec<_> = within.map(|part| part.address..part.address + part.length).collect();
        let start = Instant::now();
        let scan = scan_within(&code, segment.address, &parts);
        found.seconds += start.elapsed().as_secs_f64();
        found.bytes += code.len();
        check(&code, segment.address, &parts, &scan);
        found.scan.sites.extend(scan.sites);
        found.scan.left.extend(scan.left);
    }
    Some(found)
}

/// By a decoding of every section from its first byte: no branch leads into a site, and sites begin and end with
/// instructions.
fn check(code: &[u8], base: u64, parts: &[std::ops::Range<u64>], scan: &Scan) {
    if scan.sites.is_empty() {
        return;
    }
    let (mut targets, mut starts) = (HashSet::new(), HashSet::new());
    let near = |address: u64| {
        let next = scan.sites.partition_point(|site| site.at + 32 < address);
        scan.sites.get(next).is_some_and(|site| site.at <= address)
    };
    for part in parts {
        let bytes = &code[(part.start - base) as usize..(part.end - base) as usize];
        for each in Decoder::with_ip(64, bytes, part.start, DecoderOptions::NONE) {
            if near(each.ip()) {
                starts.insert(each.ip());
            }
            let is_branch =
                each.flow_control() != FlowControl::Next && each.op0_kind() == OpKind::NearBranch64;
            if is_branch && near(each.near_branch64()) {
                targets.insert(each.near_branch64());
            }
        }
    }
    for site in &scan.sites {
        assert!(starts.contains(&site.at) && starts.contains(&site.call), "{site:x?}");
        let mut inside = site.at + 1..site.end().max(site.call + 1);
        assert!(!inside.any(|address| targets.contains(&address)), "{site:x?}");
    }
}

/// Where objdump finds the instruction.
fn objdump(path: &Path) -> BTreeSet<u64> {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(path).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    let calls = text.lines().filter(|line| line.ends_with("syscall") && line.contains(":\t"));
    calls.map(|line| u64::from_str_radix(line.trim_start().split(':').next().unwrap(), 16).unwrap()).collect()
}

fn agree(path: &Path) -> Found {
    let found = scan_file(path).unwrap();
    found.print(path);
    let (ours, theirs) = (found.calls(), objdump(path));
    let differing: Vec<_> = ours.symmetric_difference(&theirs).map(|call| format!("{call:x}")).collect();
    assert!(differing.is_empty(), "{}: {differing:?}", path.display());
    found
}

fn first_of<'a>(paths: &[&'a str]) -> Option<&'a Path> {
    paths.iter().copied().map(Path::new).find(|path| path.exists())
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("version").output().is_ok();
    if !there {
        println!("skipped: there is no {program}");
    }
    there
}

/// Builds a program in a directory of its own, which is removed afterwards, and looks at it.
fn build(name: &str, text: &str, build: impl Fn(&Path, &Path) -> Command) -> Found {
    let directory =
        std::env::temp_dir().join(format!("etude-sites-{}-{}", std::process::id(), name.replace('.', "")));
    fs::create_dir_all(&directory).unwrap();
    let (source, program) = (directory.join(name), directory.join("program"));
    fs::write(&source, text).unwrap();
    let output = build(&source, &program).output().unwrap();
    let found = output.status.success().then(|| std::panic::catch_unwind(|| agree(&program)));
    fs::remove_dir_all(&directory).unwrap();
    found.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr))).unwrap()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_c_library_and_the_loader_can_be_patched() {
    if !is_there("objdump") {
        return;
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .find_map(|line| line.find('/').map(|at| &line[at..]).filter(|path| path.contains("libc.so")));
    for path in [library.map(Path::new), first_of(&["/lib64/ld-linux-x86-64.so.2"])].into_iter().flatten() {
        assert!(agree(path).share() >= 0.98, "{}", path.display());
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn programs_of_the_machine_can_be_patched() {
    if !is_there("objdump") {
        return;
    }
    let own = std::env::current_exe().unwrap();
    agree(&own);
    for paths in [["/sbin/ldconfig"], ["/bin/busybox"], ["/usr/bin/bash"]] {
        if let Some(path) = first_of(&paths) {
            assert!(agree(path).calls().is_empty() || agree(path).share() >= 0.9, "{}", path.display());
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_go_program_can_be_patched() {
    let gofmt = first_of(&["/usr/local/go/bin/gofmt", "/usr/bin/gofmt"]);
    let Some(gofmt) = gofmt.filter(|_| is_there("objdump")) else {
        println!("skipped: there is no gofmt, which comes with Go");
        return;
    };
    assert!(agree(gofmt).share() >= 0.9);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_static_program_with_threads_can_be_patched() {
    if !is_there("cc") || !is_there("objdump") {
        return;
    }
    let text = "#include <pthread.h>\n#include <stdio.h>\n\
        static void *run(void *x) { return x; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_cancel(t); pthread_join(t, 0); puts(\"\"); }\n";
    for optimisation in ["-O0", "-O2"] {
        let found = build(&format!("threads{optimisation}.c"), text, |source, program| {
            let mut command = Command::new("cc");
            command.args([optimisation, "-static", "-pthread", "-o"]).arg(program).arg(source);
            command
        });
        assert!(found.share() >= 0.95);
    }
}

/// For a survey: `ETUDE_SITES=/bin/a:/bin/b cargo test --release -p etude-sites --test machine -- --ignored
/// --nocapture`.
#[test]
#[ignore = "reads large programs, for minutes"]
fn programs_that_are_named_agree_with_objdump() {
    let named = std::env::var("ETUDE_SITES").unwrap_or_default();
    named.split(':').filter(|name| !name.is_empty()).map(PathBuf::from).for_each(|path| drop(agree(&path)));
}
