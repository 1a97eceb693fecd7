//! What is said of code that was made ready.

/// What was found in one piece of code.
pub struct Patched {
    pub path: String,
    pub build_id: Option<String>,
    pub sites: usize,
    /// Calls that would be recorded, or whose number is not known, at places that cannot be patched.
    pub left: Vec<LeftAsItIs>,
}

/// One of them.
pub struct LeftAsItIs {
    /// In the file.
    pub offset: u64,
    pub number: Option<u32>,
    pub why: String,
}
