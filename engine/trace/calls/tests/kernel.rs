//! The rule for what the kernel counts, against the kernel.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

use etude_calls::{Call, Counts, Processor};

/// This thread's counts; reading them counts as well, which is taken off.
struct Kernel(File);

impl Kernel {
    fn read(&self) -> ([u64; 4], u64) {
        let mut bytes = [0; 4096];
        let length = self.0.read_at(&mut bytes, 0).unwrap();
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len() + 2..].parse::<u64>().unwrap()
        };
        ([value("syscr"), value("syscw"), value("rchar"), value("wchar")], length as u64)
    }

    /// What the kernel counts of one call, what the rule says, and the result.
    fn compare(&self, name: &str, arguments: [u64; 6]) -> (Counts, Counts, i64) {
        let call = Call::named(name).unwrap();
        let number = libc::c_long::from(call.number(Processor::own().unwrap()).unwrap());
        let [a, b, c, d, e, f] = arguments;
        let (before, own) = self.read();
        // SAFETY: the callers pass descriptors of theirs and buffers that live, or addresses that the kernel refuses.
        let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
        let result = if result == -1 {
            -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap())
        } else {
            result
        };
        let (after, _) = self.read();
        let [reads, writes, read_bytes, written_bytes] = std::array::from_fn(|at| after[at] - before[at]);
        let (reads, read_bytes) = (reads - 1, read_bytes - own);
        let kernel = Counts { reads, writes, read_bytes, written_bytes, uncertain: false };
        (kernel, call.counts(&arguments, result), result)
    }
}

struct Files {
    kernel: Kernel,
    data: File,
    out: File,
    write_only: File,
    directory: File,
    pipe: [RawFd; 2],
    socket: [RawFd; 2],
    epoll: RawFd,
    buffer: Vec<u8>,
    iovec: Box<libc::iovec>,
}

fn files() -> Option<Files> {
    let io = File::open("/proc/thread-self/io").ok()?;
    let own = format!("etude-calls-{}-{:?}", std::process::id(), std::thread::current().id());
    let directory = std::env::temp_dir().join(own);
    std::fs::create_dir_all(&directory).unwrap();
    let path = |name| directory.join(name);
    std::fs::write(path("data"), vec![7; 10_000]).unwrap();
    let open =
        |name| File::options().read(true).write(true).create(true).truncate(false).open(path(name)).unwrap();
    let (mut pipe, mut socket, mut buffer) = ([0; 2], [0; 2], vec![1; 4096]);
    // SAFETY: both write two descriptors into an array of two.
    let epoll = unsafe {
        libc::pipe2(pipe.as_mut_ptr(), libc::O_NONBLOCK);
        libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0, socket.as_mut_ptr());
        libc::epoll_create1(0)
    };
    let iovec = Box::new(libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 100 });
    let files = Files {
        kernel: Kernel(io),
        data: open("data"),
        out: open("out"),
        write_only: File::options().append(true).open(path("data")).unwrap(),
        directory: File::open(&directory).unwrap(),
        pipe,
        socket,
        epoll,
        buffer,
        iovec,
    };
    std::fs::remove_dir_all(&directory).unwrap();
    Some(files)
}

impl Drop for Files {
    fn drop(&mut self) {
        for descriptor in self.pipe.iter().chain(&self.socket).chain([&self.epoll]) {
            // SAFETY: they are this struct's own, and not used after it.
            unsafe { libc::close(*descriptor) };
        }
    }
}

const NONE: u64 = 0;
const MINUS: u64 = u64::MAX;
const KERNEL: u64 = 0xffff_8000_0000_0000;

#[test]
fn the_rule_says_what_the_kernel_counts() {
    let Some(mut files) = files() else {
        eprintln!("skipped: this kernel has no /proc/thread-self/io");
        return;
    };
    let fd = |file: &File| file.as_raw_fd() as u64;
    let (data, out, only) = (fd(&files.data), fd(&files.out), fd(&files.write_only));
    let (directory, epoll) = (fd(&files.directory), files.epoll as u64);
    let [from, into] = files.pipe.map(|descriptor| descriptor as u64);
    let [near, far] = files.socket.map(|descriptor| descriptor as u64);
    let at = files.buffer.as_mut_ptr() as u64;
    let iovec = &raw const *files.iovec as u64;
    let path = CString::new("/").unwrap();
    let mut certain = 0;
    for (name, arguments) in [
        ("read", [data, at, 100, NONE, 0, 0]),
        ("read", [data, at, 0, NONE, 0, 0]),
        ("read", [only, at, 100, NONE, 0, 0]),
        ("read", [999, at, 100, NONE, 0, 0]),
        ("read", [data, KERNEL, 100, NONE, 0, 0]),
        ("read", [data, 8, 100, NONE, 0, 0]),
        ("read", [data, at, MINUS, NONE, 0, 0]),
        ("read", [directory, at, 100, NONE, 0, 0]),
        ("read", [epoll, at, 100, NONE, 0, 0]),
        ("read", [from, at, 100, NONE, 0, 0]),
        ("pread64", [data, at, 100, 50, 0, 0]),
        ("pread64", [data, at, 100, 1 << 40, 0, 0]),
        ("pread64", [data, at, 100, MINUS, 0, 0]),
        ("pread64", [from, at, 100, 0, 0, 0]),
        ("write", [out, at, 100, NONE, 0, 0]),
        ("write", [out, 8, 100, NONE, 0, 0]),
        ("write", [out, KERNEL, 100, NONE, 0, 0]),
        ("write", [directory, at, 100, NONE, 0, 0]),
        ("write", [into, at, 200, NONE, 0, 0]),
        ("read", [from, at, 100, NONE, 0, 0]),
        ("pwrite64", [out, at, 100, 50, 0, 0]),
        ("pwrite64", [out, at, 100, MINUS, 0, 0]),
        ("pwrite64", [into, at, 100, 0, 0, 0]),
        ("readv", [data, iovec, 1, 0, 0, 0]),
        ("readv", [999, iovec, 1, 0, 0, 0]),
        ("readv", [data, 8, 1, 0, 0, 0]),
        ("readv", [data, iovec, 5000, 0, 0, 0]),
        ("writev", [out, iovec, 1, 0, 0, 0]),
        ("writev", [999, iovec, 1, 0, 0, 0]),
        ("preadv", [data, iovec, 1, 10, 0, 0]),
        ("preadv", [data, iovec, 1, MINUS, MINUS, 0]),
        ("preadv", [999, iovec, 1, 10, 0, 0]),
        ("preadv", [from, iovec, 1, 10, 0, 0]),
        ("pwritev", [out, iovec, 1, 10, 0, 0]),
        ("pwritev", [out, iovec, 1, MINUS, MINUS, 0]),
        ("preadv2", [data, iovec, 1, MINUS, MINUS, 0]),
        ("preadv2", [data, iovec, 1, MINUS - 1, MINUS, 0]),
        ("preadv2", [data, iovec, 1, 0, 0, 1 << 30]),
        ("pwritev2", [out, iovec, 1, MINUS, MINUS, 0]),
        ("pwritev2", [out, iovec, 1, 20, 0, 0]),
        ("sendfile", [out, data, NONE, 100, 0, 0]),
        ("sendfile", [out, data, NONE, 0, 0, 0]),
        ("sendfile", [out, 999, NONE, 100, 0, 0]),
        ("sendfile", [999, data, NONE, 100, 0, 0]),
        ("sendfile", [out, only, NONE, 100, 0, 0]),
        ("copy_file_range", [data, NONE, out, NONE, 100, 0]),
        ("copy_file_range", [data, NONE, out, NONE, 0, 0]),
        ("copy_file_range", [999, NONE, out, NONE, 100, 0]),
        ("copy_file_range", [data, NONE, into, NONE, 100, 0]),
        ("lseek", [data, 0, 2, 0, 0, 0]),
        ("copy_file_range", [data, NONE, out, NONE, 100, 0]),
        ("sendfile", [out, data, NONE, 100, 0, 0]),
        ("lseek", [data, 0, 0, 0, 0, 0]),
        ("splice", [data, NONE, into, NONE, 100, 0]),
        ("getdents64", [directory, at, 4096, 0, 0, 0]),
        ("sendto", [near, at, 100, 0, 0, 0]),
        ("recvfrom", [far, at, 50, 0, 0, 0]),
        ("read", [far, at, 50, NONE, 0, 0]),
        ("read", [far, at, 50, NONE, 0, 0]),
        ("write", [near, at, 50, NONE, 0, 0]),
        ("readlink", [path.as_ptr() as u64, at, 100, 0, 0, 0]),
    ] {
        if Call::named(name).unwrap().number(Processor::own().unwrap()).is_none() {
            continue;
        }
        let (kernel, rule, result) = files.kernel.compare(name, arguments);
        let shown = format!("{name}{arguments:x?} = {result}");
        if rule.uncertain {
            assert!(
                kernel.reads <= rule.reads && kernel.writes <= rule.writes,
                "{shown}: {kernel:?}, {rule:?}"
            );
            assert_eq!((kernel.read_bytes, kernel.written_bytes), (0, 0), "{shown}");
        } else {
            assert_eq!(kernel, rule, "{shown}");
            certain += 1;
        }
    }
    assert!(certain >= 50, "only {certain} of the calls above are certain");
}
