//! In place of `image_patching.rs`, on processors whose programs are recorded by stops alone: nothing is done to their code.

use std::io;

use crate::rewrite::preparation::Patched;
use crate::rewrite::remote::Pid;
use crate::rewrite::ring::Raw;
use crate::rewrite::tracer::{Image, Tracer};

impl Tracer {
    pub fn make_ready(&mut self, _pid: Pid) -> io::Result<(Option<Image>, Vec<Patched>)> {
        Ok((None, Vec::new()))
    }

    pub fn adopt(&mut self, _tid: Pid) -> io::Result<()> {
        Ok(())
    }

    pub fn trapped(&mut self, _tid: Pid) -> io::Result<bool> {
        Ok(false)
    }

    pub fn signalled(&mut self, _tid: Pid) {}

    pub fn last_call(&mut self, _tid: Pid) -> Option<Raw> {
        None
    }
}
