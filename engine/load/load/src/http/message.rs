//! As much of HTTP/1.1 as a load needs: whole requests on one side, the end of an answer on the other.

use httparse::{EMPTY_HEADER, Header, Status};

/// Headers beyond this are refused.
const MOST_HEAD_BYTES: usize = 64 << 10;
const MOST_HEADERS: usize = 96;

/// What somebody asks a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub path: String,
    /// HEAD: the answer has no body.
    pub head: bool,
    /// The connection serves for further requests.
    pub keep: bool,
    /// Bytes of it, with its body.
    pub bytes: usize,
}

/// The request at the beginning of what came; None until all of it is there.
///
/// # Errors
/// It is none, or too large, or its length is not told.
pub(crate) fn request(input: &[u8]) -> Result<Option<Request>, &'static str> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut read = httparse::Request::new(&mut headers);
    let head = match read.parse(input) {
        Ok(Status::Complete(bytes)) => bytes,
        Ok(Status::Partial) if input.len() <= MOST_HEAD_BYTES => return Ok(None),
        _ => return Err("no request of HTTP/1"),
    };
    let body = length(read.headers)?.unwrap_or(0);
    if body > 1 << 20 {
        return Err("a body of more than 1 MiB");
    }
    let keep = keeps(read.version, read.headers);
    let (path, method) = (read.path.unwrap_or("/").to_owned(), read.method);
    let bytes = head + body as usize;
    Ok((input.len() >= bytes).then_some(Request { path, head: method == Some("HEAD"), keep, bytes }))
}

/// An answer of known length.
pub(crate) fn answer(status: &str, body: &str, asked: &Request) -> Vec<u8> {
    let connection = if asked.keep { "" } else { "Connection: close\r\n" };
    let shown = if asked.head { "" } else { body };
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{connection}\r\n{shown}", body.len()).into_bytes()
}

/// Where in an answer we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Head,
    /// So many bytes of the body, and then the end.
    Body(u64),
    ChunkSize,
    /// So many bytes, with the line's end.
    Chunk(u64),
    Trailer,
    /// Its end is that of the connection.
    UntilClosed,
    Over,
}

/// An answer while it comes. Its body is thrown away.
#[derive(Debug)]
pub(crate) struct Answer {
    place: Place,
    pub status: u16,
    /// The connection serves for further requests.
    pub keep: bool,
}

impl Answer {
    pub fn new() -> Answer {
        Answer { place: Place::Head, status: 0, keep: true }
    }

    /// Takes what came; true: the answer is whole.
    ///
    /// # Errors
    /// It is no answer.
    pub fn feed(&mut self, input: &mut Vec<u8>) -> Result<bool, httparse::Error> {
        loop {
            let (used, place) = match self.place {
                Place::Over => return Ok(true),
                Place::Head => match self.head(input)? {
                    Some(found) => found,
                    None => return Ok(false),
                },
                Place::Body(0) => (0, Place::Over),
                Place::Body(left) => some_of(input, left, Place::Body),
                Place::ChunkSize => match httparse::parse_chunk_size(input) {
                    Ok(Status::Complete((used, 0))) => (used, Place::Trailer),
                    Ok(Status::Complete((used, size))) => (used, Place::Chunk(size.saturating_add(2))),
                    Ok(Status::Partial) => return Ok(false),
                    Err(_) => return Err(httparse::Error::Token),
                },
                Place::Chunk(0) => (0, Place::ChunkSize),
                Place::Chunk(left) => some_of(input, left, Place::Chunk),
                Place::Trailer => match httparse::parse_headers(input, &mut [EMPTY_HEADER; MOST_HEADERS])? {
                    Status::Complete((used, _)) => (used, Place::Over),
                    Status::Partial => return bounded(input),
                },
                Place::UntilClosed => (input.len(), Place::UntilClosed),
            };
            input.drain(..used);
            let moved = place != self.place;
            self.place = place;
            if !moved {
                return Ok(false);
            }
        }
    }

    /// The other side has closed: whether that is where the answer ends.
    pub fn closed(&self) -> bool {
        self.place == Place::UntilClosed
    }

    fn head(&mut self, input: &[u8]) -> Result<Option<(usize, Place)>, httparse::Error> {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut read = httparse::Response::new(&mut headers);
        let Status::Complete(used) = read.parse(input)? else {
            return bounded(input).map(|_| None);
        };
        self.status = read.code.unwrap_or(0);
        self.keep = keeps(read.version, read.headers);
        let place = match self.status {
            100..=199 => Place::Head,
            204 | 304 => Place::Over,
            _ if chunked(read.headers) => Place::ChunkSize,
            _ => match length(read.headers).map_err(|_| httparse::Error::HeaderValue)? {
                Some(bytes) => Place::Body(bytes),
                None => Place::UntilClosed,
            },
        };
        self.keep &= place != Place::UntilClosed;
        if place == Place::Head {
            // 100 Continue and the like: the answer proper follows, in the same place.
            let rest = self.head(&input[used..])?;
            return Ok(rest.map(|(more, place)| (used + more, place)));
        }
        Ok(Some((used, place)))
    }
}

fn some_of(input: &[u8], left: u64, place: fn(u64) -> Place) -> (usize, Place) {
    let used = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
    (used, place(left - used as u64))
}

fn bounded(input: &[u8]) -> Result<bool, httparse::Error> {
    if input.len() > MOST_HEAD_BYTES { Err(httparse::Error::TooManyHeaders) } else { Ok(false) }
}

fn values<'a>(headers: &'a [Header<'_>], name: &str) -> impl Iterator<Item = &'a str> {
    let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    named.filter_map(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
}

fn has(headers: &[Header<'_>], name: &str, word: &str) -> bool {
    values(headers, name)
        .flat_map(|value| value.split(','))
        .any(|each| each.trim().eq_ignore_ascii_case(word))
}

fn chunked(headers: &[Header<'_>]) -> bool {
    has(headers, "Transfer-Encoding", "chunked")
}

fn keeps(version: Option<u8>, headers: &[Header<'_>]) -> bool {
    match version {
        Some(0) => has(headers, "Connection", "keep-alive"),
        _ => !has(headers, "Connection", "close"),
    }
}

fn length(headers: &[Header<'_>]) -> Result<Option<u64>, &'static str> {
    let mut found = None;
    for value in values(headers, "Content-Length") {
        let bytes = value.parse().map_err(|_| "a Content-Length that is no number")?;
        if found.is_some_and(|before| before != bytes) {
            return Err("two lengths that differ");
        }
        found = Some(bytes);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [(&str, u16, bool); 6] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n", 200, true),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n",
            200,
            true,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n", 200, true),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            503,
            false,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, true),
        ("HTTP/1.0 404 Not Found\r\nContent-Length: 1\r\n\r\nx", 404, false),
    ];

    proptest! {
        #[test]
        fn an_answer_is_whole_at_its_last_byte_and_not_before(
            kind in 0..KINDS.len(), cuts in prop::collection::vec(1..9_usize, 1..40),
        ) {
            let (text, status, keep) = KINDS[kind];
            let mut answer = Answer::new();
            let (mut input, mut rest) = (Vec::new(), text.as_bytes());
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                input.extend_from_slice(now);
                rest = later;
                prop_assert_eq!(answer.feed(&mut input).unwrap(), rest.is_empty(), "{:?}", rest);
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!((answer.status, answer.keep, input.len()), (status, keep, 0));
        }

        #[test]
        fn no_bytes_make_it_fall(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = request(&bytes);
            let mut answer = Answer::new();
            let _ = answer.feed(&mut bytes.clone());
            let mut late = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            late.extend(&bytes);
            let _ = Answer::new().feed(&mut late);
        }

        #[test]
        fn a_request_is_read_when_all_of_it_is_there(cut in 0..100_usize) {
            let text = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbodyGET / HTTP/1.1\r\n\r\n";
            let whole = text.len() - 18;
            let found = request(&text[..cut.min(text.len())]).unwrap();
            prop_assert_eq!(found.map(|found| (found.path, found.bytes, found.keep)),
                (cut >= whole).then(|| ("/x".to_owned(), whole, true)));
        }
    }

    #[test]
    fn an_answer_without_a_length_ends_with_its_connection() {
        let mut answer = Answer::new();
        assert_eq!(answer.feed(&mut b"HTTP/1.1 200 OK\r\n\r\nabc".to_vec()), Ok(false));
        assert!(answer.closed() && !answer.keep);
        assert_eq!(answer.feed(&mut b"more".to_vec()), Ok(false));
    }

    #[test]
    fn what_is_no_answer_or_request_is_refused() {
        assert!(Answer::new().feed(&mut b"SSH-2.0\r\n".to_vec()).is_err());
        assert!(Answer::new().feed(&mut b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".to_vec()).is_err());
        assert!(request(b"hello\r\n\r\n").is_err());
        assert!(request(b"GET / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n").is_err());
        assert!(request(&[b'a'; 70_000]).is_err());
    }
}
