#!/bin/sh
# Says in one line what is missing to build Étude, and what to install for it.
# usage: check-tools.sh PYTHON CARGO
set -u
python=${1:-python3}
cargo=${2:-cargo}

fail() {
    echo "make: $*" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 ||
    fail "no $python here: install Python 3.11 or newer (Debian: apt-get install python3 python3-venv)"
version=$("$python" -c 'import sys; print(".".join(map(str, sys.version_info[:3])))' 2>/dev/null) ||
    fail "$python does not run: install Python 3.11 or newer (Debian: apt-get install python3 python3-venv)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is $version: install Python 3.11 or newer, then make setup PYTHON=python3.11"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python cannot make virtual environments: apt-get install python3-venv"

linker=
for candidate in "${CC:-cc}" cc gcc clang; do
    if command -v "$candidate" >/dev/null 2>&1; then
        linker=$candidate
        break
    fi
done
[ -n "$linker" ] ||
    fail "no C compiler (Rust links with it): apt-get install gcc libc6-dev"

wanted=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' Cargo.toml)
command -v "$cargo" >/dev/null 2>&1 ||
    fail "no $cargo here: install rustup (Debian 13, Ubuntu 24.04: apt-get install rustup), then: rustup toolchain install $wanted.0"
found=$("$cargo" --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\.[0-9]*\).*/\1/p')
[ -n "$found" ] ||
    fail "$cargo does not run with the version of rust-toolchain.toml: rustup toolchain install $wanted.0 -c rustfmt -c clippy"
oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)
[ "$oldest" = "$wanted" ] ||
    fail "$cargo is $found, Étude needs $wanted: install rustup, then: rustup toolchain install $wanted.0"
