//! The hook is run in the test itself, thread by thread.

use std::arch::asm;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::rewrite::hook::{Clock, Entry};
use crate::rewrite::in_process::{Native, call};
use crate::rewrite::layout::{DATA, HEAD, HEADER, MARGIN, SLOT};
use crate::rewrite::ring::{Raw, Segment};

const CLOCKS: [Clock; 2] = [Clock::Tsc, Clock::Vdso];

fn recorded(segment: &Segment, ring: usize) -> Vec<Raw> {
    let mut found = Vec::new();
    segment.ring(ring).drain(false, |raw| found.push(raw));
    found
}

fn with(clock: Clock, kind: fn(u32) -> Entry, run: impl FnOnce(&Native, &Segment)) {
    let segment = Segment::new().expect("memory");
    let native = Native::new(clock, kind, &segment).expect("executable memory");
    segment.ring(0).begin(true, false);
    native.enter(&segment, 0);
    run(&native, &segment);
    native.leave();
}

#[test]
fn a_record_holds_number_arguments_result_and_times_in_order() {
    for clock in CLOCKS {
        with(
            clock,
            |_| Entry::Plain,
            |native, segment| {
                // SAFETY: a failing call that touches no memory.
                let result =
                    unsafe { call(native.entry(Entry::Plain), libc::SYS_lseek, [u64::MAX, 7, 8, 9, 10, 11]) };
                assert_eq!(result, -i64::from(libc::EBADF));
                let [raw] = recorded(segment, 0).try_into().expect("one record");
                assert_eq!((raw.number, raw.result), (libc::SYS_lseek as u32, result));
                assert_eq!(raw.arguments, [u64::MAX, 7, 8, 9, 0, 0]);
                assert!(raw.begun < raw.ended);
            },
        );
    }
}

#[test]
fn a_wide_record_has_all_six_arguments() {
    with(
        Clock::Tsc,
        |_| Entry::Wide,
        |native, segment| {
            // SAFETY: as above.
            unsafe { call(native.entry(Entry::Wide), libc::SYS_lseek, [u64::MAX, 7, 8, 9, 10, 11]) };
            assert_eq!(recorded(segment, 0)[0].arguments, [u64::MAX, 7, 8, 9, 10, 11]);
        },
    );
}

#[test]
fn texts_of_every_length_are_kept_wherever_the_ring_ends() {
    for clock in CLOCKS {
        with(
            clock,
            |_| Entry::Path1,
            |native, segment| {
                for length in (0..1500).chain((0..4000).map(|n| n * 7 % 1890)) {
                    let first = CString::new("a".repeat(length)).expect("no zero in it");
                    let second = CString::new("b".repeat(1500 - length.min(1500))).expect("no zero in it");
                    let arguments = [first.as_ptr() as u64, second.as_ptr() as u64, 3, 4, 5, 6];
                    // SAFETY: both paths live through the call, which fails or does nothing.
                    unsafe { call(native.entry(Entry::Path12), libc::SYS_getppid, arguments) };
                    let [raw] = recorded(segment, 0).try_into().expect("one record");
                    assert_eq!(raw.texts, [Some(first.into_bytes()), Some(second.into_bytes())]);
                    assert_eq!(raw.arguments, arguments);
                }
            },
        );
    }
}

#[test]
fn a_path_that_cannot_be_read_is_no_fault() {
    with(
        Clock::Tsc,
        |_| Entry::Path2,
        |native, segment| {
            // SAFETY: the kernel refuses the address.
            let result =
                unsafe { call(native.entry(Entry::Path2), libc::SYS_openat, [u64::MAX, 1, 0, 0, 0, 0]) };
            assert_eq!(result, -i64::from(libc::EFAULT));
            assert_eq!(recorded(segment, 0)[0].texts, [None, None]);
            // SAFETY: a null path is one without a text.
            unsafe { call(native.entry(Entry::Path1), libc::SYS_getppid, [0; 6]) };
            assert_eq!(recorded(segment, 0)[0].texts[0], None);
        },
    );
}

#[test]
fn a_range_is_kept_where_the_kernel_has_read_it() {
    let file = std::fs::File::open("/proc/self/exe").expect("a file");
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
    let mut range = [0_u8; 32];
    range[..24].copy_from_slice(&[0, 0, 0, 0, 1, 1, 1, 1, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    for clock in CLOCKS {
        with(
            clock,
            |_| Entry::Range3,
            |native, segment| {
                let made = |fd, command: i32, at| {
                    let arguments = [fd, command as u64, at, 4, 0, 0];
                    // SAFETY: the range lives through the call; other addresses are refused, or nothing to the kernel.
                    let result = unsafe { call(native.entry(Entry::Range3), libc::SYS_fcntl, arguments) };
                    let [raw] = recorded(segment, 0).try_into().expect("one record");
                    assert_eq!((raw.arguments, raw.result), (arguments, result));
                    (result, raw.texts)
                };
                let at = range.as_ptr() as u64;
                for command in [libc::F_SETLK, libc::F_SETLKW, libc::F_OFD_SETLK, libc::F_OFD_SETLKW] {
                    assert_eq!(made(fd, command, at), (0, [Some(range[..24].to_vec()), None]));
                }
                assert_eq!(made(u64::MAX, libc::F_SETLK, 1).1, [None, None]);
                assert_eq!(made(fd, libc::F_SETLKW, 1), (-i64::from(libc::EFAULT), [None, None]));
                assert_eq!(made(fd, libc::F_GETFD, 1), (1, [None, None]));
                assert_eq!(made(fd, libc::F_GETLK, 1).1, [None, None]);
            },
        );
    }
}

#[test]
fn offsets_are_kept_as_they_are_behind_a_call_that_succeeds() {
    let [input, output] = [0, 1].map(|_| {
        // SAFETY: a name that ends with a zero byte; the descriptors are the test's own.
        unsafe {
            let fd = libc::memfd_create(c"offsets".as_ptr(), 0);
            assert_eq!(libc::ftruncate(fd, 100), 0);
            fd as u64
        }
    });
    let bytes = |offset: u64| Some(offset.to_le_bytes().to_vec());
    for clock in CLOCKS {
        with(
            clock,
            |_| Entry::Offset24,
            |native, segment| {
                let made = |entry, number, arguments| {
                    // SAFETY: the offsets live through the call; other addresses are refused.
                    let result = unsafe { call(native.entry(entry), number, arguments) };
                    let [raw] = recorded(segment, 0).try_into().expect("one record");
                    assert_eq!((raw.arguments, raw.result), (arguments, result));
                    (result, raw.texts)
                };
                let copied = |from: Option<u64>, to: Option<u64>| {
                    let mut places = [from.unwrap_or(0), to.unwrap_or(0)];
                    let first = places.as_mut_ptr();
                    // SAFETY: within the array.
                    let second = unsafe { first.add(1) } as u64;
                    let from = from.map_or(0, |_| first as u64);
                    let to = to.map_or(0, |_| second);
                    made(Entry::Offset24, libc::SYS_copy_file_range, [input, from, output, to, 20, 0])
                };
                assert_eq!(copied(Some(10), Some(50)), (20, [bytes(30), bytes(70)]));
                assert_eq!(copied(None, Some(50)).1, [None, bytes(70)]);
                assert_eq!(copied(Some(10), None).1, [bytes(30), None]);
                let lost = [u64::MAX, 1, u64::MAX, 1, 20, 0];
                assert_eq!(made(Entry::Offset24, libc::SYS_copy_file_range, lost).1, [None, None]);
                let at = 90_u64;
                let sent = |at| made(Entry::Offset3, libc::SYS_sendfile, [output, input, at, 20, 0, 0]);
                assert_eq!(sent(&raw const at as u64), (10, [bytes(100), None]));
                assert_eq!(sent(0).1, [None, None]);
            },
        );
    }
}

#[test]
fn the_address_of_a_unix_socket_is_kept_and_nothing_behind_it_is_read() {
    const PAGE: usize = 4096;
    // SAFETY: two fresh pages, of which the second cannot be read.
    let page = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(std::ptr::null_mut(), 2 * PAGE, rights, flags, -1, 0).cast::<u8>();
        assert_eq!(libc::mprotect(page.add(PAGE).cast(), PAGE, libc::PROT_NONE), 0);
        page
    };
    let mut tried = 0_u32;
    for clock in CLOCKS {
        with(
            clock,
            |_| Entry::Address2,
            |native, segment| {
                for length in [110, 109, 64, 63, 17, 12] {
                    tried += 1;
                    let mut address = [vec![1, 0, 0], format!("{}-{tried}", std::process::id()).into_bytes()];
                    let name = address[1].clone();
                    address[1].extend(name.iter().cycle().take(PAGE));
                    let address: Vec<u8> = address.concat()[..length].to_vec();
                    // SAFETY: a plain call, then addresses that end with the page.
                    let (fd, at) = unsafe {
                        let at = page.add(PAGE - length);
                        at.copy_from(address.as_ptr(), length);
                        (libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) as u64, at as u64)
                    };
                    let made = |fd, at, length: usize| {
                        let arguments = [fd, at, length as u64, 4, 0, 0];
                        // SAFETY: the address lives through the call; others are refused, or nothing to the kernel.
                        let result =
                            unsafe { call(native.entry(Entry::Address2), libc::SYS_bind, arguments) };
                        let [raw] = recorded(segment, 0).try_into().expect("one record");
                        assert_eq!((raw.arguments, raw.result), (arguments, result));
                        (result, raw.texts)
                    };
                    assert_eq!(made(u64::MAX, 1, length), (-i64::from(libc::EBADF), [None, None]));
                    assert_eq!(made(fd, 1, length), (-i64::from(libc::EFAULT), [None, None]));
                    assert_eq!(made(fd, at, length), (0, [Some(address), None]));
                    // SAFETY: as above.
                    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) } as u64;
                    assert_eq!(made(fd, at, 2), (0, [None, None])); // the kernel gives it a name
                }
            },
        );
    }
}

#[test]
fn a_number_in_rax_alone_takes_its_own_entry_or_none() {
    fn kind(number: u32) -> Entry {
        if i64::from(number) == libc::SYS_lseek { Entry::Wide } else { Entry::Raw }
    }
    with(Clock::Tsc, kind, |native, segment| {
        // SAFETY: calls that fail or do nothing.
        unsafe {
            assert!(call(native.any(), libc::SYS_getppid, [0; 6]) > 0);
            assert_eq!(call(native.any(), 100_000, [0; 6]), -i64::from(libc::ENOSYS));
            call(native.any(), libc::SYS_lseek, [u64::MAX, 7, 8, 9, 10, 11]);
        }
        let [raw] = recorded(segment, 0).try_into().expect("one record");
        assert_eq!(raw.arguments[5], 11);
    });
}

#[test]
fn a_thread_whose_gs_is_not_ours_makes_its_call_and_is_not_recorded() {
    with(
        Clock::Tsc,
        |_| Entry::Plain,
        |native, segment| {
            native.enter(segment, 1); // no magic word there
            for entry in [Entry::Plain, Entry::Wide, Entry::Path1] {
                // SAFETY: no memory is touched.
                assert!(unsafe { call(native.entry(entry), libc::SYS_getppid, [0; 6]) } > 0);
            }
            assert!(recorded(segment, 1).is_empty());
        },
    );
}

#[test]
fn a_first_record_that_is_only_reserved_is_not_taken_for_one() {
    let segment = Segment::new().expect("memory");
    segment.ring(0).begin(true, false);
    let head = segment.address(0) + HEAD as u64;
    // SAFETY: the producer's word of a ring that no thread has.
    unsafe { *(head as *mut u64) += SLOT as u64 };
    assert!(recorded(&segment, 0).is_empty());
}

#[test]
fn a_record_that_is_never_written_holds_up_the_others_until_the_ring_ends() {
    with(
        Clock::Tsc,
        |_| Entry::Plain,
        |native, segment| {
            let seek = |n: u64| {
                // SAFETY: a failing call that touches no memory.
                unsafe { call(native.entry(Entry::Plain), libc::SYS_lseek, [u64::MAX, n, 0, 0, 0, 0]) };
            };
            (0..3).for_each(seek);
            let second = segment.address(0) + (HEADER + SLOT) as u64;
            // SAFETY: the word of the second record, which nobody reads at this time.
            unsafe { *(second as *mut u64) = 0 };
            assert_eq!(recorded(segment, 0).len(), 1, "it may still be written");
            (3..(DATA / SLOT) as u64).for_each(seek);
            assert!(recorded(segment, 0).is_empty(), "its place is not for others");
            let dropped = segment.ring(0).dropped();
            let mut found = Vec::new();
            segment.ring(0).drain(true, |raw| found.push(raw.arguments[1]));
            assert_eq!(found, (2..(DATA - MARGIN) as u64 / SLOT as u64 + 1).collect::<Vec<_>>());
            assert_eq!(segment.ring(0).dropped(), dropped + 1);
        },
    );
}

#[test]
fn what_finds_no_room_is_counted_and_what_did_is_whole() {
    with(
        Clock::Tsc,
        |_| Entry::Plain,
        |native, segment| {
            let room = (DATA - MARGIN) / SLOT;
            for n in 0..room as u64 + 100 {
                // SAFETY: a failing call that touches no memory.
                unsafe { call(native.entry(Entry::Plain), libc::SYS_lseek, [u64::MAX, n, 0, 0, 0, 0]) };
            }
            let found = recorded(segment, 0);
            assert_eq!((found.len(), segment.ring(0).dropped()), (room, 100));
            assert!(found.iter().enumerate().all(|(n, raw)| raw.arguments[1] == n as u64));
            // SAFETY: as above.
            unsafe { call(native.entry(Entry::Path1), libc::SYS_getppid, [0; 6]) };
            assert_eq!(recorded(segment, 0).len(), 1, "there is room again");
        },
    );
}

#[test]
fn what_waits_for_room_is_whole_with_its_texts() {
    const CALLS: u64 = 30_000;
    for (clock, entry) in CLOCKS.into_iter().flat_map(|clock| [(clock, Entry::Path1), (clock, Entry::Plain)])
    {
        let segment = Segment::new().expect("memory");
        let native = Native::new(clock, |_| entry, &segment).expect("executable memory");
        segment.ring(0).begin(false, false);
        let found = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                native.enter(&segment, 0);
                for number in 0..CALLS {
                    let path = CString::new(number.to_string()).expect("no zero in it");
                    let arguments = [path.as_ptr() as u64, number, 0, 0, 0, 0];
                    // SAFETY: the path lives through the call, which takes no argument.
                    unsafe { call(native.entry(entry), libc::SYS_getppid, arguments) };
                }
                native.leave();
            });
            let mut found = Vec::new();
            while !writer.is_finished() {
                found.extend(recorded(&segment, 0)); // seldom enough that the ring is full each time
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            found.extend(recorded(&segment, 0));
            found
        });
        assert_eq!(segment.ring(0).dropped(), 0);
        assert_eq!(found.len() as u64, CALLS, "{clock:?} {entry:?}");
        for (number, raw) in found.iter().enumerate() {
            assert_eq!(raw.arguments[1], number as u64);
            let text = (entry == Entry::Path1).then(|| number.to_string().into_bytes());
            assert_eq!(raw.texts[0], text);
        }
    }
}

#[test]
fn no_register_but_those_of_a_system_call_is_changed() {
    for clock in CLOCKS {
        with(
            clock,
            |_| Entry::Plain,
            |native, segment| {
                for entry in [Entry::Plain, Entry::Wide, Entry::Path1] {
                    let before: [u64; 13] = std::array::from_fn(|n| 0x1111_1111_1111_1111 * (n as u64 + 1));
                    let mut before = before;
                    before[0] = 0; // the first argument: no path
                    let mut after = [0u64; 13];
                    let entry = native.entry(entry);
                    // SAFETY: every register is put back; the stack is used in pairs.
                    unsafe {
                        asm!(
                            "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
                            "push rax",
                            "push rcx",
                            "mov rax, rdx",
                            "mov rdi, [rax]", "mov rsi, [rax+8]", "mov rdx, [rax+16]", "mov r10, [rax+24]",
                            "mov r8, [rax+32]", "mov r9, [rax+40]", "mov rbx, [rax+48]", "mov rbp, [rax+56]",
                            "mov r12, [rax+64]", "mov r13, [rax+72]", "mov r14, [rax+80]", "mov r15, [rax+88]",
                            "movq xmm7, [rax+96]",
                            "mov eax, 110",
                            "lea rcx, [rip + 2f]",
                            "jmp [rsp]",
                            "syscall",
                            "2:",
                            "add rsp, 8",
                            "pop rax",
                            "mov [rax], rdi", "mov [rax+8], rsi", "mov [rax+16], rdx", "mov [rax+24], r10",
                            "mov [rax+32], r8", "mov [rax+40], r9", "mov [rax+48], rbx", "mov [rax+56], rbp",
                            "mov [rax+64], r12", "mov [rax+72], r13", "mov [rax+80], r14", "mov [rax+88], r15",
                            "movq [rax+96], xmm7",
                            "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
                            inout("rax") after.as_mut_ptr() => _, inout("rcx") entry => _, inout("rdx") before.as_ptr() => _,
                            out("rsi") _, out("rdi") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("xmm7") _,
                        );
                    }
                    assert_eq!(after, before);
                }
                assert_eq!(recorded(segment, 0).len(), 3);
            },
        );
    }
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);
static ENTRY: AtomicU64 = AtomicU64::new(0);

extern "C" fn interrupt(_: libc::c_int) {
    let n = SIGNALS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: a failing call that touches no memory.
    unsafe { call(ENTRY.load(Ordering::Relaxed), libc::SYS_lseek, [u64::MAX, n, 1, 0, 0, 0]) };
}

#[test]
fn signal_handlers_record_in_the_midst_of_a_record() {
    let segment = Segment::new().expect("memory");
    let native = Native::new(Clock::Tsc, |_| Entry::Plain, &segment).expect("executable memory");
    ENTRY.store(native.entry(Entry::Plain), Ordering::Relaxed);
    segment.ring(0).begin(false, false);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let recording = scope.spawn(|| {
            native.enter(&segment, 0);
            // SAFETY: a timer whose signal comes to this thread alone.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = interrupt as *const () as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(libc::SIGRTMIN() + 3, &action, std::ptr::null_mut());
                let mut event: libc::sigevent = std::mem::zeroed();
                event.sigev_notify = libc::SIGEV_THREAD_ID;
                event.sigev_signo = libc::SIGRTMIN() + 3;
                event.sigev_notify_thread_id = libc::gettid();
                let mut timer = std::ptr::null_mut();
                assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
                let each = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
                let every = libc::itimerspec { it_interval: each, it_value: each };
                libc::timer_settime(timer, 0, &every, std::ptr::null_mut());
                let mut n = 0;
                while SIGNALS.load(Ordering::Relaxed) < 2000 {
                    call(native.entry(Entry::Plain), libc::SYS_lseek, [u64::MAX, n, 0, 0, 0, 0]);
                    n += 1;
                }
                libc::timer_delete(timer);
                done.store(n, Ordering::Release);
            }
            native.leave();
        });
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        let mut take =
            |raw: Raw| if raw.arguments[2] == 1 { &mut theirs } else { &mut own }.push(raw.arguments[1]);
        while !recording.is_finished() {
            segment.ring(0).drain(false, &mut take);
        }
        segment.ring(0).drain(false, &mut take);
        theirs.sort_unstable(); // one handler may interrupt another
        assert_eq!(own, (0..done.load(Ordering::Acquire)).collect::<Vec<_>>());
        assert_eq!(theirs, (0..SIGNALS.load(Ordering::Relaxed)).collect::<Vec<_>>());
    });
}
