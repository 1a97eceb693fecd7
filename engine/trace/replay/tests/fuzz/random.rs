//! Numbers that are the same in each run.

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub struct Random(u64);

/// Numbers at which something changes.
const EDGES: [u64; 16] = [
    0,
    1,
    0x7f,
    0x80,
    4096,
    0xffff,
    0x1_0000,
    1 << 26,
    i32::MAX as u64,
    u32::MAX as u64,
    1 << 40,
    1 << 47,
    i64::MAX as u64,
    1 << 63,
    -100_i64 as u64,
    u64::MAX,
];

impl Random {
    /// Those of one case.
    pub fn new(seed: u64, case: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ case);
        random.any();
        random
    }

    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.any() % bound.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// An edge, a number near one, or any.
    pub fn number(&mut self) -> u64 {
        let edge = *self.of(&EDGES);
        match self.below(4) {
            0 => self.any() >> self.below(64),
            1 => edge.wrapping_sub(1),
            _ => edge,
        }
    }
}
