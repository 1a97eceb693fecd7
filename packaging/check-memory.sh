#!/bin/sh
# Runs tests of crates that read what others wrote in Miri: undefined behaviour in them, or in what they are built on, is an
# error. What calls a library in C (trace: zstd) cannot run there, and what goes through megabytes (columns) takes hours.
# Without a nightly toolchain that has Miri nothing is run, and nothing downloaded.
# usage: check-memory.sh CARGO
set -eu
if ! "$1" +nightly miri --version > /dev/null 2>&1 ||
    ! [ -e "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library/Cargo.toml" ]; then
    echo "NOT RUN: Miri on calls and protocol; to have it run: rustup toolchain install nightly --component miri,rust-src"
    exit 0
fi
# Miri interprets: a thousandth of the usual speed. Tests read files of this repository.
export PROPTEST_CASES=1 MIRIFLAGS=-Zmiri-disable-isolation
"$1" +nightly miri test --quiet --package etude-calls --lib
"$1" +nightly miri test --quiet --package etude-protocol --test vectors
