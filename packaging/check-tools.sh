#!/bin/sh
# Says in one line all that is missing to build Étude, with the commands that install it on this distribution.
# As root on Debian and Ubuntu it installs the packages itself; Rust is never installed.
# usage: check-tools.sh PYTHON CARGO
set -u
python=${1:-python3}
cargo=${2:-cargo}
wanted=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' Cargo.toml)

# Fills `lacking` (words for people), `packages` (of Debian) and `rust` (what to run for it).
look() {
    lacking='' packages='' rust=''
    version=$("$python" -c 'import sys; print(".".join(map(str, sys.version_info[:3])))' 2>/dev/null)
    if [ -z "$version" ]; then
        lack "Python 3.11 or newer as $python" python3 python3-venv
    elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        lack "Python 3.11 or newer ($python is $version; name another one by PYTHON=python3.11)"
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        lack "the module venv of $python" python3-venv
    fi
    links || lack "a C compiler with its library (Rust links with it)" gcc libc6-dev
    look_for_rust
}

lack() {
    lacking="$lacking${lacking:+, }$1"
    shift
    packages="$packages${*:+ $*}"
}

links() {
    for compiler in "${CC:-cc}" cc gcc clang; do
        if command -v "$compiler" >/dev/null 2>&1; then
            echo 'int main(void) { return 0; }' | "$compiler" -x c -o /dev/null - 2>/dev/null
            return
        fi
    done
    return 1
}

look_for_rust() {
    found=$("$cargo" --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\.[0-9]*\).*/\1/p')
    oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)
    [ -n "$found" ] && [ "$oldest" = "$wanted" ] && return
    lack "Rust $wanted${found:+ ($cargo is $found)}"
    if command -v rustup >/dev/null 2>&1; then
        rust="rustup toolchain install $wanted.0 -c rustfmt -c clippy"
    elif [ -z "$manager" ] || { [ "$manager" = apt-get ] && [ -z "$(apt-cache show rustup 2>/dev/null)" ]; }; then
        # Debian 12 has no rustup, but knows the name: apt-cache ends with 0.
        command -v curl >/dev/null 2>&1 || packages="$packages curl ca-certificates"
        rust="curl -sSf https://sh.rustup.rs | sh -s -- -y && . ~/.cargo/env"
    else
        packages="$packages rustup"
        rust="rustup toolchain install $wanted.0 -c rustfmt -c clippy"
    fi
}

manager=
for candidate in apt-get dnf zypper pacman; do
    command -v "$candidate" >/dev/null 2>&1 && manager=$candidate && break
done

look
if [ -n "$packages" ] && [ "$manager" = apt-get ] && [ "$(id -u 2>/dev/null)" = 0 ]; then
    apt-get -qq update </dev/null >/dev/null
    look # at what the distribution has, which apt knows only now
    echo "installing$packages"
    # shellcheck disable=SC2086  # one word a package
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-remove --no-install-recommends $packages \
        </dev/null >/dev/null
    look
fi
[ -n "$lacking" ] || exit 0
case $manager in
    apt-get) get="apt-get update && apt-get install$packages" ;;
    dnf | zypper) get="$manager install$(echo "$packages" | sed 's/ python3-venv//; s/libc6-dev/glibc-devel/')" ;;
    pacman) get="pacman -S$(echo "$packages" | sed 's/ python3-venv//; s/ libc6-dev//; s/python3/python/')" ;;
    *) get= ;;
esac
line="make: missing: $lacking" next=run
[ -n "$packages" ] && [ -n "$get" ] && line="$line; as root: $get" next='then'
[ -n "$rust" ] && line="$line; $next: $rust"
echo "$line" >&2
exit 1
