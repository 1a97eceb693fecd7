//! The file that a call is about.

use etude_calls::Kind;

use crate::changes::{ends, is_link_target};
use crate::flags::AT_FDCWD;
use crate::paths::directory_of;
use crate::rows::Done;

/// Descriptors and path of the file that a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// It is about no file.
    Nothing,
    /// The file behind a descriptor; `source`: the descriptor that data are read from, where it is another one.
    Descriptor { descriptor: i32, source: Option<i32> },
    /// A path from a directory's descriptor (AT_FDCWD: the working directory). Without a text, or with an empty one, the
    /// directory itself.
    Path { directory: i32, text: Option<&'a [u8]> },
}

/// The file that a call is about: of two paths the first, of two descriptors the one that is written.
pub fn subject<'a>(done: &Done<'a>) -> Subject<'a> {
    let kinds = || done.call.row().arguments.iter().enumerate();
    let path = kinds().find(|(index, kind)| **kind == Kind::Path && !is_link_target(done.call, *index));
    if let Some((index, _)) = path {
        let directory = directory_of(done, index).unwrap_or(AT_FDCWD);
        return Subject::Path { directory, text: done.text(index) };
    }
    let (argument, source) = match (done.call.name(), ends(done)) {
        (_, [Some(source), Some(destination)]) => (destination.argument, Some(source.argument)),
        ("tee", _) => (1, Some(0)),
        // Its kind is that of a number: requests name files.
        ("io_uring_enter", _) => (0, None),
        _ => match kinds().find(|(_, kind)| **kind == Kind::Fd) {
            Some((index, _)) => (index, None),
            None => return Subject::Nothing,
        },
    };
    let source = source.map(|index| done.descriptor(index));
    Subject::Descriptor { descriptor: done.descriptor(argument), source }
}

#[cfg(test)]
mod tests {
    use etude_calls::Call;

    use super::*;

    #[test]
    fn only_calls_about_memory_queues_and_new_descriptors_are_about_no_file() {
        let nothing: Vec<&str> = Call::all()
            .filter(|call| {
                let done = Done::new(*call, &[3; 6], 0, std::iter::empty());
                subject(&done) == Subject::Nothing
            })
            .map(Call::name)
            .collect();
        assert_eq!(
            nothing.join(" "),
            "close_range sync getcwd munmap msync mremap mprotect madvise brk io_setup io_submit io_getevents \
             io_pgetevents io_destroy io_uring_setup socket socketpair pipe pipe2 memfd_create eventfd2 \
             open_by_handle_at sqe_other cqe iocb_other io_event futex"
        );
    }

    #[test]
    fn data_come_from_one_descriptor_and_go_to_another() {
        for (name, descriptor, source) in
            [("sendfile", 3, 4), ("copy_file_range", 5, 3), ("splice", 5, 3), ("tee", 4, 3)]
        {
            let done = Done::new(Call::named(name).unwrap(), &[3, 4, 5, 6, 7, 8], 0, std::iter::empty());
            assert_eq!(subject(&done), Subject::Descriptor { descriptor, source: Some(source) }, "{name}");
        }
    }

    #[test]
    fn a_link_is_what_is_made_and_not_what_it_holds() {
        let texts = [(0, &b"target"[..]), (2, b"link")];
        let done = Done::new(Call::named("symlinkat").unwrap(), &[0, 7, 0, 0, 0, 0], 0, texts.into_iter());
        assert_eq!(subject(&done), Subject::Path { directory: 7, text: Some(b"link") });
    }
}
