//! Sites as bytes and back. `cache.rs` says what is around them.

use crate::{Form, JUMP, Left, Moved, Relative, Site, Why};

/// No call has this number.
const UNKNOWN: u32 = u32::MAX;

/// Adds a site's bytes.
pub fn site(into: &mut Vec<u8>, base: u64, site: &Site) {
    address(into, base, site.at);
    into.push((site.call - site.at) as u8);
    into.push(site.form as u8);
    into.push(site.bytes.len() as u8);
    into.extend(&site.bytes);
    moved(into, base, &site.before);
    moved(into, base, &site.after);
    into.push(u8::from(site.back.is_some()));
    site.back.iter().for_each(|back| address(into, base, *back));
    number(into, site.number);
}

/// Adds the bytes of one that is left.
pub fn left(into: &mut Vec<u8>, base: u64, left: &Left) {
    address(into, base, left.call);
    number(into, left.number);
    into.push(left.why as u8);
    into.push(u8::from(left.site.is_some()));
    left.site.iter().for_each(|it| site(into, base, it));
}

fn moved(into: &mut Vec<u8>, base: u64, moved: &Moved) {
    into.push(moved.bytes.len() as u8);
    into.extend(&moved.bytes);
    into.push(moved.relative.len() as u8);
    for relative in &moved.relative {
        into.push(relative.field);
        address(into, base, relative.target);
    }
}

fn address(into: &mut Vec<u8>, base: u64, address: u64) {
    into.extend(address.wrapping_sub(base).to_le_bytes());
}

fn number(into: &mut Vec<u8>, number: Option<u32>) {
    into.extend(number.unwrap_or(UNKNOWN).to_le_bytes());
}

/// Reads from bytes; None where they end, or hold what none of ours can.
pub struct Reader<'a> {
    bytes: &'a [u8],
    base: u64,
}

impl<'a> Reader<'a> {
    /// For code that is at `base`.
    pub fn new(bytes: &'a [u8], base: u64) -> Self {
        Reader { bytes, base }
    }

    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn chunk<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        self.take(COUNT)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        self.u8().filter(|byte| *byte < 2).map(|byte| byte == 1)
    }

    fn address(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes).map(|distance| distance.wrapping_add(self.base))
    }

    fn number(&mut self) -> Option<Option<u32>> {
        self.u32().map(|number| (number != UNKNOWN).then_some(number))
    }

    fn counted(&mut self) -> Option<Vec<u8>> {
        let count = self.u8()?;
        self.take(usize::from(count)).map(<[u8]>::to_vec)
    }

    fn moved(&mut self) -> Option<Moved> {
        let bytes = self.counted()?;
        let count = self.u8()?;
        let relative = |reader: &mut Self| Some(Relative { field: reader.u8()?, target: reader.address()? });
        let relative = (0..count).map(|_| relative(self)).collect::<Option<_>>()?;
        Some(Moved { bytes, relative })
    }

    pub fn site(&mut self) -> Option<Site> {
        let at = self.address()?;
        let call = at.wrapping_add(u64::from(self.u8()?));
        let code = self.u8()?;
        let form = Form::ALL.into_iter().find(|form| *form as u8 == code)?;
        let bytes = self.counted().filter(|bytes| bytes.len() as u64 >= JUMP)?;
        let (before, after) = (self.moved()?, self.moved()?);
        let back = if self.flag()? { Some(self.address()?) } else { None };
        Some(Site { at, call, form, bytes, before, after, back, number: self.number()? })
    }

    pub fn left(&mut self) -> Option<Left> {
        let (call, number, code) = (self.address()?, self.number()?, self.u8()?);
        let why = Why::ALL.into_iter().find(|why| *why as u8 == code)?;
        let site = if self.flag()? { Some(Box::new(self.site()?)) } else { None };
        Some(Left { call, number, why, site })
    }
}
