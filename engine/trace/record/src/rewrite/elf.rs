//! The little that has to be known of an ELF image in memory.

/// The value of a dynamic symbol, from the image's beginning (little-endian, 64 bit).
pub fn symbol(image: &[u8], name: &str) -> Option<u64> {
    let half = |at: usize| Some(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(image.get(at..at + 8)?.try_into().ok()?));
    let (sections, size, count) = (long(0x28)? as usize, half(0x3a)? as usize, half(0x3c)? as usize);
    (0..count).find_map(|index| {
        let section = sections + index * size;
        if word(section + 4)? != 11 {
            return None; // not the dynamic symbols
        }
        let (offset, length) = (long(section + 24)? as usize, long(section + 32)? as usize);
        let strings = sections + word(section + 40)? as usize * size;
        let strings = long(strings + 24)? as usize;
        (offset..offset + length).step_by(24).find_map(|entry| {
            let text = image.get(strings + word(entry)? as usize..)?;
            (text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&0))
                .then(|| long(entry + 8))?
        })
    })
}
