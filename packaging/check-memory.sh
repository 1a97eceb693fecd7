#!/bin/sh
# Runs the tests of some crates that read what others wrote in Miri: undefined behaviour in them, or in what they are built
# on, is an error. What calls a library in C (zstd) cannot run there. Without a nightly toolchain that has Miri nothing is
# run, and nothing downloaded.
# usage: check-memory.sh CARGO
set -eu
packages='etude-calls etude-columns etude-protocol'
if ! "$1" +nightly miri --version > /dev/null 2>&1 ||
    ! [ -e "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library/Cargo.toml" ]; then
    echo "NOT RUN: Miri on $packages; to have it run: rustup toolchain install nightly --component miri,rust-src"
    exit 0
fi
# Miri interprets: a thousandth of the usual speed. Tests read files of this repository.
export PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation
for package in $packages; do
    "$1" +nightly miri test --quiet --package "$package" --lib
done
