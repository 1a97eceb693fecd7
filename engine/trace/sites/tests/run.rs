//! Code in which a jump was written does what it did, and its calls pass by where the jump leads.
#![cfg(target_arch = "x86_64")]

#[allow(dead_code)]
mod common;

use common::{bytes, code};
use etude_sites::{JUMP, Site, scan};

const PAGE: usize = 4096;

/// Executable memory: a page of code, one for where jumps lead, and one to count in.
struct Memory(*mut u8);

impl Memory {
    fn new(code: &[u8]) -> Memory {
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping that nothing else knows.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 3 * PAGE, all, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        let memory = Memory(at.cast());
        memory.write(memory.base(), code);
        memory
    }

    fn base(&self) -> u64 {
        self.0 as u64
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let offset = (at - self.base()) as usize;
        assert!(offset + bytes.len() <= 3 * PAGE);
        // SAFETY: within the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(offset), bytes.len()) };
    }

    fn read(&self, at: u64, count: usize) -> &[u8] {
        // SAFETY: within the mapping; the tests read nothing beyond it.
        unsafe { std::slice::from_raw_parts(self.0.add((at - self.base()) as usize), count) }
    }

    fn call(&self, offset: u64, arguments: [u64; 3]) -> u64 {
        type Function = extern "C" fn(u64, u64, u64) -> u64;
        // SAFETY: a function of three arguments begins there; it keeps what the System V ABI wants kept.
        let function: Function = unsafe { std::mem::transmute(self.base() + offset) };
        function(arguments[0], arguments[1], arguments[2])
    }

    /// How often calls passed by.
    fn count(&self) -> u32 {
        u32::from_le_bytes(self.read(self.base() + 2 * PAGE as u64, 4).try_into().unwrap())
    }

    /// Writes what a site's jump leads to, and the jump.
    fn patch(&self, site: &Site) {
        let start = self.base() + PAGE as u64;
        let mut text = site.before.at(start).unwrap();
        // incl count(%rip): also changes the flags
        relative(&mut text, start, &[0xff, 0x05], self.base() + 2 * PAGE as u64);
        text.extend([0x0f, 0x05]);
        text.extend(site.after.at(start + text.len() as u64).unwrap());
        if let Some(back) = site.back {
            relative(&mut text, start, &[0xe9], back);
        }
        self.write(start, &text);
        assert_eq!(self.read(site.at, site.bytes.len()), site.bytes);
        let mut jump = Vec::new();
        relative(&mut jump, site.at, &[0xe9], start);
        assert_eq!(jump.len() as u64, JUMP);
        self.write(site.at, &jump);
        // The rest of the place is never run.
        self.write(site.at + JUMP, &vec![0x06; site.bytes.len() - JUMP as usize]);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nothing uses any more.
        unsafe { libc::munmap(self.0.cast(), 3 * PAGE) };
    }
}

/// Adds an instruction that ends with the distance to a target; `text` begins at `start`.
fn relative(text: &mut Vec<u8>, start: u64, opcode: &[u8], target: u64) {
    text.extend(opcode);
    let behind = start + text.len() as u64 + 4;
    text.extend((target.wrapping_sub(behind) as i32).to_le_bytes());
}

const NUMBER_LSEEK: &str = "b8 08000000";

/// Functions that call lseek(fd, offset, whence), or read(fd, …), and what they are patched by.
const FUNCTIONS: [(&str, &str); 9] = [
    ("Number", "b8 08000000 0f05"),
    ("Number", "48 c7 c0 08000000 0f05"),
    ("Check", "6a 08 58 0f05 48 3d 01f0ffff 72 02 f7 d8"), // cmp; jb +2; neg %eax
    ("Result", "6a 08 58 0f05 48 89 c1 48 8d 41 03"),      // mov %rax,%rcx; lea 3(%rcx),%rax
    ("Result", "6a 08 58 0f05 85 c0 78 05 b8 2a000000"),   // test; js +5; mov $42,%eax
    ("Before", "31 c9 b0 08 0f b6 c0 0f05"),               // xor %ecx,%ecx; mov $8,%al; movzx
    ("Before", "b8 08000000 48 83 c6 01 0f05"),            // mov; add $1,%rsi
    ("After", "6a 08 58 eb 01 90 0f05 e9 01000000 90"),    // syscall; jmp +1
    ("After", "6a 08 58 eb 01 90 0f05 c3 cccc"),           // syscall; ret
];

#[test]
fn a_function_does_the_same_with_a_jump_in_it() {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let good = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
    for (form, text) in FUNCTIONS {
        let memory = Memory::new(&code(text));
        // Behind a call nothing can be moved: for the forms that move nothing before.
        let found = scan(&code(text), memory.base());
        assert_eq!((found.sites.len(), found.left.len()), (1, 0), "{text}");
        let calls = [[good, 5, 0], [good, 7, 1], [good, u64::MAX, 0], [u64::MAX, 5, 0]];
        let plain = calls.map(|arguments| memory.call(512, arguments));
        assert_eq!(format!("{:?}", found.sites[0].form), form, "{text}");
        memory.patch(&found.sites[0]);
        assert_eq!(calls.map(|arguments| memory.call(512, arguments)), plain, "{text}");
        assert_eq!(memory.count(), 4, "{text}");
    }
}

#[test]
fn a_word_beside_the_code_is_found_from_where_its_reader_was_moved_to() {
    // syscall; neg %eax; mov 0x10(%rip),%rax; ret
    let text = format!("{NUMBER_LSEEK} eb 01 90 0f05 f7 d8 48 8b 05 10000000 c3");
    let mut code = code(&text);
    let word = 512 + bytes(&text).len() - 1 + 0x10;
    code[word..word + 8].copy_from_slice(&0x1122_3344_5566_7788u64.to_le_bytes());
    let memory = Memory::new(&code);
    let found = scan(&code, memory.base());
    memory.patch(&found.sites[0]);
    assert_eq!(memory.call(512, [u64::MAX, 0, 0]), 0x1122_3344_5566_7788);
    assert_eq!(memory.count(), 1);
}
