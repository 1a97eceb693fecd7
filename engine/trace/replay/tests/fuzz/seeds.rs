//! What is altered: traces of programs, scripts of these and of the documentation, and their rolls.

use std::fs::File;
use std::path::Path;

use etude_script::{Kept, Options, Script, from_trace, parse, write};
use etude_trace::{
    Event, Footer, Found, Frame, Header, Meta, Open, Policy, Reader, Scheduling, Writer, import,
};

/// Programs under `strace -f -ttt -T`.
const RECORDED: [&str; 4] = [COPIES, STARTS, MAPS, CONNECTS];

/// Texts as fio, darshan-dxt-parser and blkparse write them.
pub const FOREIGN: [&str; 4] = [
    "fio version 2 iolog\n/d/a add\n/d/a open\n/d/a read 0 4096\n/d/a wait 500 0\n/d/a write 8192 512\n/d/a sync\n\
     /d/a trim 0 512\n/d/a close\n",
    "fio version 3 iolog\n31 a add\n258 a open\n263 a read 0 16384\n300 b write 0 512\n6867 a datasync 0 0\n23245 a close\n",
    "# darshan log version: 3.41\n# DXT, file_id: 1, file_name: /tmp/t\n# DXT, rank: 0, hostname: h\n\
     \x20X_POSIX 0 write 0 0 262144 0.0029 0.0032\n X_MPIIO 0 write 0 0 262144 0.0028 0.0033\n\
     # DXT, file_id: 2, file_name: <STDOUT>\n X_STDIO 1 read 0 4096 9 0.0040 0.0041 [0]\n",
    "  8,0 3 1 0.000000000 697 Q W 8192 + 8 [k]\n  8,0 1 2 0.000100000 700 Q RA 4096000 + 16 [cat]\n\
     \x20 8,0 1 3 0.000200000 700 Q FWS [cat]\n  8,0 1 4 0.000300000 700 Q DS 0 + 4096 [t]\nCPU0 (8,0):\n Reads Queued: 1\n",
];

const COPIES: &str = r#"
10 1700000000.000100 execve("/bin/cp", ["cp", "in", "out"], 0x7ffe /* 20 vars */) = 0 <0.000300>
10 1700000000.000500 openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3 <0.000010>
10 1700000000.000520 close(3) = 0 <0.000002>
10 1700000000.000600 newfstatat(AT_FDCWD, "in", {st_mode=S_IFREG|0644, st_size=8192, ...}, 0) = 0 <0.000004>
10 1700000000.000700 openat(AT_FDCWD, "in", O_RDONLY) = 3 <0.000008>
10 1700000000.000720 openat(AT_FDCWD, "d/out", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 4 <0.000030>
10 1700000000.000800 read(3, "abc"..., 4096) = 4096 <0.000006>
10 1700000000.000900 write(4, "abc"..., 4096) = 4096 <0.000009>
10 1700000000.001000 read(3, "abc"..., 4096) = 4096 <0.000006>
10 1700000000.001100 write(4, "abc"..., 4096) = 4096 <0.000009>
10 1700000000.001200 copy_file_range(3, [4096], 4, NULL, 8192, 0) = 4096 <0.000009>
10 1700000000.001300 pwritev(4, [{iov_base="ab", iov_len=2}, {iov_base="cd", iov_len=2}], 2, 100) = 4 <0.000003>
10 1700000000.001400 lseek(3, 0, SEEK_SET) = 0 <0.000001>
10 1700000000.001500 dup2(4, 7) = 7 <0.000001>
10 1700000000.001600 ftruncate(7, 5000) = 0 <0.000011>
10 1700000000.001700 fsync(7) = 0 <0.000400>
10 1700000000.002200 close(4) = 0 <0.000002>
10 1700000000.002300 rename("d/out", "d/final") = 0 <0.000020>
10 1700000000.002400 symlink("final", "d/link") = 0 <0.000020>
10 1700000000.002500 link("d/final", "d/second") = 0 <0.000020>
10 1700000000.002600 unlink("d/second") = 0 <0.000020>
10 1700000000.002700 mkdir("new", 0777) = 0 <0.000020>
10 1700000000.002800 chdir("new") = 0 <0.000005>
10 1700000000.002900 openat(AT_FDCWD, "..", O_RDONLY|O_DIRECTORY) = 4 <0.000006>
10 1700000000.003000 getdents64(4, 0x5555 /* 5 entries */, 32768) = 160 <0.000009>
10 1700000000.003100 stat("nosuch", 0x7ffe) = -1 ENOENT (No such file or directory) <0.000003>
10 1700000000.003200 setxattr("../in", "user.a", "b", 1, 0) = 0 <0.000020>
10 1700000000.003300 +++ exited with 0 +++
"#;

const STARTS: &str = r#"
10 1700000000.000100 execve("/bin/sh", ["sh"], 0x7ffe /* 20 vars */) = 0 <0.000300>
10 1700000000.000500 openat(AT_FDCWD, "log", O_RDWR|O_CREAT|O_APPEND, 0600) = 3 <0.000010>
10 1700000000.000600 pipe2([4, 5], O_CLOEXEC) = 0 <0.000004>
10 1700000000.000700 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f00) = 11 <0.000100>
11 1700000000.000900 dup2(5, 1) = 1 <0.000002>
11 1700000000.001000 execve("/bin/cat", ["cat"], 0x7ffe /* 20 vars */) = 0 <0.000300>
11 1700000000.001400 openat(AT_FDCWD, "data", O_RDONLY) = 3 <0.000010>
11 1700000000.001500 read(3, "x"..., 131072) = 100000 <0.000030>
11 1700000000.001600 write(1, "x"..., 65536) = 65536 <0.000030>
10 1700000000.001700 read(4, "x"..., 65536) = 65536 <0.000040>
10 1700000000.001800 clone(child_stack=0x7f01, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 12 <0.000030>
12 1700000000.001900 write(3, "x"..., 512) = 512 <0.000009>
10 1700000000.001950 write(3, "y"..., 512) = 512 <0.000009>
12 1700000000.002000 pread64(3, "x"..., 1024, 0) = 1024 <0.000009>
12 1700000000.002100 flock(3, LOCK_EX) = 0 <0.000002>
12 1700000000.002200 +++ exited with 0 +++
11 1700000000.002300 +++ exited with 0 +++
10 1700000000.002400 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11 <0.000030>
10 1700000000.002500 close(3) = 0 <0.000002>
10 1700000000.002600 unlink("log") = 0 <0.000020>
10 1700000000.002700 +++ exited with 0 +++
"#;

const MAPS: &str = r#"
1700000000.000100 openat(AT_FDCWD, "/lib/libc.so.6", O_RDONLY|O_CLOEXEC) = 3 <0.000010>
1700000000.000200 fstat(3, {st_mode=S_IFREG|0755, st_size=20000, ...}) = 0 <0.000002>
1700000000.000300 mmap(NULL, 20000, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3, 0) = 0x7f0000001000 <0.000006>
1700000000.000400 mmap(0x7f0000002000, 8192, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED, 3, 0x1000) = 0x7f0000002000 <0.000006>
1700000000.000500 mprotect(0x7f0000001000, 4096, PROT_NONE) = 0 <0.000004>
1700000000.000600 close(3) = 0 <0.000001>
1700000000.000700 brk(NULL) = 0x555555000000 <0.000001>
1700000000.000800 brk(0x555555021000) = 0x555555021000 <0.000001>
1700000000.000900 mmap(NULL, 1048576, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0010000000 <0.000004>
1700000000.001000 madvise(0x7f0010000000, 4096, MADV_DONTNEED) = 0 <0.000002>
1700000000.001100 munmap(0x7f0000001000, 20000) = 0 <0.000009>
1700000000.001200 creat("made", 0640) = 3 <0.000030>
1700000000.001300 fallocate(3, 0, 0, 65536) = 0 <0.000020>
1700000000.001400 pwrite64(3, "x"..., 4096, 61440) = 4096 <0.000009>
1700000000.001500 sendfile(3, 3, [0], 100) = 100 <0.000009>
1700000000.001600 fadvise64(3, 0, 0, POSIX_FADV_DONTNEED) = 0 <0.000002>
1700000000.001700 truncate("made", 10) = 0 <0.000010>
"#;

const CONNECTS: &str = r#"
10 1700000000.000100 execve("/bin/server", ["server"], 0x7ffe /* 20 vars */) = 0 <0.000300>
10 1700000000.000500 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3 <0.000010>
10 1700000000.000600 bind(3, {sa_family=AF_UNIX, sun_path="s"}, 110) = 0 <0.000004>
10 1700000000.000650 bind(3, {sa_family=AF_UNIX, sun_path=@"s"}, 4) = 0 <0.000004>
10 1700000000.000700 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f00) = 11 <0.000100>
11 1700000000.000900 socket(AF_UNIX, SOCK_STREAM, 0) = 4 <0.000002>
11 1700000000.001000 connect(4, {sa_family=AF_UNIX, sun_path="s"}, 4) = 0 <0.000030>
11 1700000000.001100 socket(AF_UNIX, SOCK_STREAM, 0) = 5 <0.000002>
11 1700000000.001200 connect(5, {sa_family=AF_UNIX, sun_path=@"s"}, 4) = 0 <0.000030>
10 1700000000.001300 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 6 <0.000030>
10 1700000000.001400 accept(3, NULL, NULL) = 7 <0.000030>
11 1700000000.001500 sendto(4, "x"..., 1000, 0, NULL, 0) = 1000 <0.000009>
11 1700000000.001600 write(5, "y"..., 50) = 50 <0.000009>
10 1700000000.001700 recvfrom(7, "y"..., 4096, 0, NULL, NULL) = 50 <0.000009>
10 1700000000.001800 read(6, "x"..., 4096) = 1000 <0.000009>
10 1700000000.001900 write(6, "z"..., 7) = 7 <0.000009>
11 1700000000.002000 read(4, "z"..., 4096) = 7 <0.000009>
11 1700000000.002100 close(4) = 0 <0.000002>
10 1700000000.002200 read(6, "", 4096) = 0 <0.000009>
10 1700000000.002250 close(6) = 0 <0.000002>
11 1700000000.002300 +++ exited with 0 +++
10 1700000000.002400 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11 <0.000030>
10 1700000000.002500 unlink("s") = 0 <0.000020>
10 1700000000.002700 +++ exited with 0 +++
"#;

/// A trace as what stands in it.
#[derive(Clone)]
pub struct Noted {
    pub header: Header,
    pub metas: Vec<Meta>,
    pub chunks: Vec<(u32, Vec<Event>)>,
}

/// All of these are whole.
pub struct Seeds {
    pub traces: Vec<Vec<u8>>,
    pub noted: Vec<Noted>,
    pub texts: Vec<Vec<u8>>,
    pub rolls: Vec<Vec<u8>>,
}

/// Uses a file of its own for a while.
pub fn seeds(scratch: &Path) -> Seeds {
    let mut seeds = Seeds { traces: Vec::new(), noted: Vec::new(), texts: documented(), rolls: Vec::new() };
    for text in RECORDED {
        let file = File::create(scratch).expect("a file to write");
        let imported = import::strace(text.trim_start().as_bytes(), file).expect("a text of strace");
        assert_eq!((imported.strange, imported.strange_arguments), (0, 0), "{imported:?}");
        let noted = Noted::read(scratch);
        for noted in [noted.clone(), noted.with_more()] {
            noted.write(scratch).expect("a file to write");
            seeds.texts.push(script_text(scratch));
            seeds.traces.push(std::fs::read(scratch).expect("it was written"));
            seeds.noted.push(noted);
        }
    }
    seeds.rolls = seeds.texts.iter().map(|text| roll(text)).collect();
    seeds
}

/// The scripts of docs/howto/scripts.md.
fn documented() -> Vec<Vec<u8>> {
    let page = include_str!("../../../../../docs/howto/scripts.md");
    let blocks = page.split("```script\n").skip(1);
    let text = |block: &str| block.split("```").next().expect("it has a beginning").as_bytes().to_vec();
    blocks.map(text).collect()
}

fn script_text(trace: &Path) -> Vec<u8> {
    let options = Options { pipes: Kept::All, ..Options::default() };
    text(&from_trace(trace, &options).expect("a whole trace").0)
}

pub fn text(script: &Script) -> Vec<u8> {
    let mut text = Vec::new();
    write(script, &mut text).expect("memory to write to");
    text
}

fn roll(text: &[u8]) -> Vec<u8> {
    let script = parse("seed", text).expect("a whole script").script;
    etude_replay::compile(&script, Vec::new()).expect("memory to write to").0
}

impl Noted {
    fn read(path: &Path) -> Noted {
        let mut reader = Reader::open(path).expect("a whole trace");
        let mut noted = Noted { header: reader.header().clone(), metas: Vec::new(), chunks: Vec::new() };
        while let Some(frame) = reader.next().expect("a whole trace") {
            match frame {
                Frame::Meta(meta) => noted.metas.push(meta),
                Frame::Events { thread, events } => noted.chunks.push((thread, events.to_vec())),
                Frame::Footer(_) => {}
            }
        }
        noted
    }

    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut writer = Writer::create(File::create(path)?, &self.header)?;
        self.metas.iter().try_for_each(|meta| writer.meta(meta))?;
        self.chunks.iter().try_for_each(|(thread, events)| writer.events(*thread, events))?;
        writer.finish(&Footer::default())
    }

    /// The same with all that a recorder of ours notes beside calls.
    fn with_more(mut self) -> Noted {
        self.header = Header { cwd: "/w".into(), argv: vec!["x".into(), "y\nz".into()], ..self.header };
        let open = [(0, "/w/standing", 2, 10), (9, "pipe:[1]", 0, 0)];
        let open = open.map(|(descriptor, path, flags, offset)| Open {
            descriptor,
            path: path.into(),
            flags,
            offset,
        });
        self.metas.push(Meta::Descriptors { process: 0, open: open.into(), at_ns: 0 });
        let found = |path: &str, kind: &str, bytes, target: Option<&str>| Found {
            path: path.into(),
            kind: kind.into(),
            bytes,
            target: target.map(Into::into),
            ..Found::default()
        };
        let same = Found { same_as: Some("/w/in".into()), ..found("/w/same", "file", 9000, None) };
        let files = vec![
            found("/w/in", "file", 9000, None),
            found("/w/d", "directory", 0, None),
            found("/w/data", "link", 0, Some("d/data")),
            same,
        ];
        self.metas.push(Meta::Files { files });
        let class = Scheduling { policy: Policy::Batch, priority: 0, nice: 5 };
        self.metas.push(Meta::Scheduling { process: 0, class });
        let counts = [(0, 0, 0), (1000, 400, 600), (u64::MAX, 500, u64::MAX)];
        self.metas.extend(counts.map(|(at_ns, cpu_ns, run_delay_ns)| Meta::RunDelay {
            thread: 0,
            at_ns,
            cpu_ns,
            run_delay_ns,
        }));
        // In parts, so that texts come again in a later chunk.
        let parts = self
            .chunks
            .iter()
            .flat_map(|(thread, events)| events.chunks(8).map(|part| (*thread, part.to_vec())));
        self.chunks = parts.collect();
        self
    }
}
