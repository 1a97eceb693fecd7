//! What is read of ELF images.

use std::fs::{self, File};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::process::Command;

use etude_sites::{Elf, Layout};

fn own() -> Elf {
    let file = File::open("/proc/self/exe").unwrap();
    Elf::read(Layout::File, |at, into| file.read_exact_at(into, at)).unwrap()
}

#[test]
fn the_build_id_is_the_one_that_readelf_prints() {
    let Ok(output) = Command::new("readelf").arg("-n").arg("/proc/self/exe").output() else {
        println!("skipped: there is no readelf");
        return;
    };
    let file = std::env::current_exe().unwrap();
    let output = Command::new("readelf").arg("-n").arg(file).output().unwrap_or(output);
    let text = String::from_utf8_lossy(&output.stdout);
    let printed = text.lines().find_map(|line| line.trim().strip_prefix("Build ID: ").map(str::to_owned));
    let id = own().build_id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    assert_eq!(id, printed);
}

#[test]
fn an_image_in_memory_has_the_same_build_id_and_segments() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let name = std::env::current_exe().unwrap();
    let line = maps.lines().find(|line| line.ends_with(name.to_str().unwrap())).unwrap();
    let base = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let memory = File::open("/proc/self/mem").unwrap();
    let elf = Elf::read(Layout::Memory, |at, into| memory.read_exact_at(into, base + at)).unwrap();
    let own = own();
    assert_eq!((elf.build_id, elf.segments, elf.sections), (own.build_id, own.segments, vec![]));
}

#[test]
fn the_sections_that_hold_code_lie_in_executable_segments() {
    let own = own();
    assert!(!own.sections.is_empty());
    for section in &own.sections {
        let holds = |part: &etude_sites::Part| {
            part.offsets().start <= section.offset && section.offsets().end <= part.offsets().end
        };
        assert!(own.segments.iter().any(holds), "{section:x?}");
    }
}

#[test]
fn what_is_no_image_is_refused() {
    for text in [b"".as_slice(), b"#!/bin/sh", &[b'x'; 100], b"\x7fELF\x01\x01"] {
        let read = Elf::read(Layout::File, |at, into| {
            let from = text.get(at as usize..at as usize + into.len());
            into.copy_from_slice(from.ok_or(Error::from(ErrorKind::UnexpectedEof))?);
            Ok(())
        });
        assert!(read.is_err());
    }
}
