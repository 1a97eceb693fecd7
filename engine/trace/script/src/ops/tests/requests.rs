//! Requests of io_uring and aio.

use super::*;

const REQUESTS: &str = "file \"a\" 8192
openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000001000>
openat(AT_FDCWD, \"b\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 4 <0.000001000>
sqe_read(3, 5, 4096, 0, 0x0, 0) = 4096 <0.000000000>
sqe_write(4, 5, 4096, 0, 0x1, 0) = 4096 <0.000000000>
io_uring_enter(5, 2, 2, IORING_ENTER_GETEVENTS, 0) = 2 <0.000001000>
cqe(5, 0x1) = 0 <0.000000000>
sqe_read(3, 5, 4096, 4096, 0x1, 0) = 4096 <0.000000000>
io_uring_enter(5, 1, 1, IORING_ENTER_GETEVENTS, 0) = 1 <0.000001000>
cqe(5, 0x0) = 0 <0.000000000>
cqe(5, 0x1) = 0 <0.000000000>
";

#[test]
fn calls_about_requests_go_with_these() {
    let of_b = only_files(&read(REQUESTS), &[Glob::new(b"b").unwrap()]).unwrap();
    assert_eq!(
        shown(&of_b),
        "compute(0.000001000)
openat(AT_FDCWD, \"b\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 4 <0.000001000>
sqe_write(4, 5, 4096, 0, 0x1, 0) = 4096 <0.000000000>
io_uring_enter(5, 2, 2, IORING_ENTER_GETEVENTS, 0) = 2 <0.000001000>
cqe(5, 0x1) = 0 <0.000000000>
compute(0.000001000)
"
    );
    let other = filter(&read(REQUESTS), &[], &[Class::Other]).unwrap();
    assert!(!shown(&other).contains("cqe") && !shown(&other).contains("io_uring_enter"), "{}", shown(&other));
    let cut = cut(&read(REQUESTS), 3_000, 9_000).unwrap();
    let expected = "sqe_read(3, 5, 4096, 4096, 0x1, 0) = 4096 <0.000000000>
io_uring_enter(5, 1, 1, IORING_ENTER_GETEVENTS, 0) = 1 <0.000001000>
cqe(5, 0x1) = 0 <0.000000000>
";
    assert!(shown(&cut).ends_with(expected) && shown(&cut).matches("cqe").count() == 1, "{}", shown(&cut));
}

#[test]
fn sizes_of_requests_are_scaled() {
    let sizes = Sizes { factor: 2.0, align: 1 };
    let scaled = shown(&scale_sizes(&read(REQUESTS), sizes).unwrap());
    assert!(scaled.starts_with("file \"a\" 16384\n"), "{scaled}");
    assert!(scaled.contains("sqe_read(3, 5, 8192, 8192, 0x1, 0) = 8192"), "{scaled}");
    assert!(scaled.contains("cqe(5, 0x1) = 0"), "{scaled}");
}
