use std::io::Write;
use std::os::fd::AsRawFd;

use super::*;

/// A file that has no name.
fn file(content: &[u8]) -> std::fs::File {
    let mut file = tempfile();
    file.write_all(content).unwrap();
    file
}

fn tempfile() -> std::fs::File {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE).open(std::env::temp_dir()).unwrap()
}

/// All ways of taking requests that are there.
fn queues(largest: usize) -> Vec<(&'static str, Queue)> {
    let data = || Arc::new(Pages::random(1 << 16).unwrap());
    let of = |taker: Box<dyn Taker>| Queue::of(taker, false, largest, data()).unwrap();
    let mut found = vec![("threads", of(Box::<pool::Pool>::default()))];
    found.extend(ring::Ring::new().ok().map(|ring| ("io_uring", of(Box::new(ring)))));
    found.extend(context::Context::new().ok().map(|context| ("aio", of(Box::new(context)))));
    found
}

fn ask(queue: &Queue, number: u64, deed: Deed, fd: RawFd, offset: i64, length: u32, flags: u64) {
    let name = match deed {
        Deed::Read => "sqe_read",
        Deed::Write => "sqe_write",
        Deed::Fsync => "sqe_fsync",
        Deed::Fdatasync => "sqe_fdatasync",
    };
    let asked = Asked {
        call: Call::named(name).unwrap(),
        place: Place { step: number, ..Place::default() },
        expected: i64::from(length),
        number,
    };
    let at = match deed {
        Deed::Read => queue.room(length as usize).unwrap(),
        _ => queue._data.at as u64,
    };
    queue.ask(asked, Ready { id: 0, deed, fd, at, length, offset, flags: Flags(flags) });
}

#[test]
fn what_is_handed_over_is_done_whatever_takes_it() {
    for (name, queue) in queues(8192) {
        let file = file(&[]);
        let fd = file.as_raw_fd();
        for number in 0..1000 {
            ask(&queue, number, Deed::Write, fd, 4096 * number as i64, 4096, 0);
        }
        queue.hand_over(1000);
        let results: Vec<i64> = (0..1000).map(|number| queue.take(number).unwrap().result).collect();
        assert_eq!(results, [4096; 1000], "{name}");
        assert_eq!(file.metadata().unwrap().len(), 4_096_000, "{name}");
        ask(&queue, 7, Deed::Read, fd, 4_095_000, 8192, 0);
        ask(&queue, 8, Deed::Fdatasync, fd, 0, 0, 0);
        ask(&queue, 9, Deed::Read, -1, 0, 100, 0);
        queue.hand_over(0);
        // Reads are taken as they are done.
        let mut reads =
            [9, 7].map(|number| queue.take(number).unwrap()).map(|read| (read.place.step, read.result));
        reads.sort_unstable();
        assert_eq!(reads, [(7, 1000), (9, -i64::from(libc::EBADF))], "{name}: up to the end");
        assert_eq!(queue.take(8).unwrap().result, 0, "{name}");
        assert_eq!(queue.take(8), None, "{name}: it was taken");
    }
}

#[test]
fn requests_know_where_they_stand_and_when_they_were_handed_over() {
    for (name, queue) in queues(4096) {
        let file = file(b"abc");
        ask(&queue, 5, Deed::Read, file.as_raw_fd(), 0, 10, 0);
        let before = now_ns();
        queue.hand_over(1);
        let found = queue.take(5).unwrap();
        assert_eq!((found.place.step, found.expected, found.result), (5, 10, 3), "{name}");
        assert!(before <= found.begun && found.begun <= found.ended, "{name}");
    }
}

#[test]
fn what_nobody_takes_is_done_at_the_end() {
    for (name, queue) in queues(4096) {
        let file = file(&[]);
        for number in 0..600 {
            ask(&queue, 0, Deed::Write, file.as_raw_fd(), 10 * number, 10, 0);
            if number % 100 == 0 {
                queue.hand_over(0);
            }
        }
        let left = queue.finish();
        assert_eq!(left.iter().filter(|each| each.result == 10).count(), 600, "{name}");
        assert_eq!(file.metadata().unwrap().len(), 6000, "{name}");
        assert_eq!(queue.finish(), [], "{name}");
    }
}

#[test]
fn a_link_that_breaks_takes_those_behind_it_along() {
    const LINK: u64 = 4;
    const HARD: u64 = 8;
    for (name, queue) in queues(4096).into_iter().filter(|(name, _)| *name != "aio") {
        let file = file(b"abc");
        let fd = file.as_raw_fd();
        let result = |flags| {
            ask(&queue, 0, Deed::Read, fd, 0, 10, flags);
            ask(&queue, 1, Deed::Read, fd, 0, 3, 0);
            queue.hand_over(2);
            [0, 1].map(|number| queue.take(number).unwrap().result)
        };
        assert_eq!(result(0), [3, 3], "{name}");
        assert_eq!(result(HARD), [3, 3], "{name}");
        // What a short read does differs between kernels; an error breaks a chain in all.
        ask(&queue, 0, Deed::Read, -1, 0, 10, LINK);
        ask(&queue, 1, Deed::Write, fd, 100, 3, LINK);
        ask(&queue, 2, Deed::Write, fd, 100, 3, 0);
        queue.hand_over(3);
        let results = [0, 1, 2].map(|number| queue.take(number).unwrap().result);
        assert_eq!(results[1..], [-i64::from(libc::ECANCELED); 2], "{name}");
        assert_eq!(file.metadata().unwrap().len(), 3, "{name}");
    }
}

#[test]
fn one_that_drains_comes_behind_all_others() {
    const DRAIN: u64 = 2;
    for (name, queue) in queues(4096).into_iter().filter(|(name, _)| *name != "aio") {
        let file = file(&[]);
        let fd = file.as_raw_fd();
        for number in 0..20 {
            ask(&queue, number, Deed::Write, fd, 100 * number as i64, 100, 0);
        }
        ask(&queue, 20, Deed::Read, fd, 1900, 4096, DRAIN);
        ask(&queue, 21, Deed::Write, fd, 2000, 100, 0);
        queue.hand_over(22);
        assert_eq!(
            queue.take(20).unwrap().result,
            100,
            "{name}: it finds those before, and not the one behind"
        );
        assert_eq!(queue.finish().len(), 21, "{name}");
    }
}

#[test]
fn threads_that_share_a_queue_take_what_is_theirs() {
    for (name, queue) in queues(4096) {
        let (file, queue) = (file(&[0; 4096]), &queue);
        let fd = file.as_raw_fd();
        std::thread::scope(|scope| {
            let of = |first: u64| {
                move || {
                    (0..500).all(|number| {
                        let number = first + number;
                        ask(queue, number, Deed::Read, fd, (number % 4096) as i64, 1, 0);
                        queue.hand_over((number % 2) as usize);
                        queue.take(number).unwrap().result == 1
                    })
                }
            };
            let threads = [0, 1000, 2000].map(|first| scope.spawn(of(first)));
            assert!(threads.into_iter().all(|thread| thread.join().unwrap()), "{name}");
        });
    }
}

#[test]
fn a_file_may_be_closed_before_its_requests_are_done() {
    for (name, queue) in queues(4096) {
        let file = file(&[0; 4096]);
        for number in 0..100 {
            ask(&queue, number, Deed::Read, file.as_raw_fd(), 0, 4096, 0);
        }
        queue.hand_over(0);
        drop(file);
        assert!(queue.finish().iter().all(|each| each.result == 4096), "{name}");
    }
}
