//! Machine code by hand.

/// Where the pieces of code that tests make are.
pub const BASE: u64 = 0x40_0000;
/// Where in them the bytes begin that a test is about.
pub const HERE: u64 = BASE + 512;

/// Bytes written as hexadecimal digits.
pub fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.split_whitespace().flat_map(str::bytes).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Code whose bytes at `HERE` are those; before them are 512 bytes of nop, behind them ret and 511 of int3.
pub fn code(text: &str) -> Vec<u8> {
    let mut code = vec![0x90; 512];
    code.extend(bytes(text));
    code.push(0xc3);
    code.extend([0xcc; 511]);
    code
}
