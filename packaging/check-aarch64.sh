#!/bin/sh
# The engine builds for aarch64, without warnings. Nothing is linked, so no C compiler for that processor is needed:
# `true` stands for it. Without Rust's library for aarch64 nothing is checked, and nothing downloaded.
# usage: check-aarch64.sh CARGO
set -eu
target=aarch64-unknown-linux-gnu
if ! [ -d "$(rustc --print target-libdir --target $target)" ]; then
    echo "not checked: whether the engine builds for aarch64; to have it checked: rustup target add $target"
    exit 0
fi
export CC_aarch64_unknown_linux_gnu=true AR_aarch64_unknown_linux_gnu=true
exec "$1" clippy --quiet --target $target --package etude-engine -- -D warnings
