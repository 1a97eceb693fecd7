#!/bin/bash
# Installs what is missing of debian-packages.txt where that is possible (root and apt-get), and
# otherwise says what is missing and what for. Never fails: a test skips what it cannot run.
#
# usage: install-debian-packages.sh [POLICY]    POLICY: where Debian asks whether a service may start
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
list=$(dirname "$0")/debian-packages.txt
policy=${1:-/usr/sbin/policy-rc.d}
declare -A why=()
names=()

while IFS='#' read -r name reason; do
    name=${name//[[:space:]]/}
    [[ -n $name ]] || continue
    names+=("$name")
    why[$name]=${reason# }
done <"$list"

missing() {
    local name
    for name in "${names[@]}"; do
        dpkg-query --show --showformat='${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed ||
            echo "$name"
    done
}

report() {
    local name
    for name in $1; do
        echo "missing package $name: ${why[$name]}"
    done
}

if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian system: what tests find missing they skip, and say so (the list: $list)"
    exit 0
fi
absent=$(missing)
if [[ -z $absent ]]; then
    echo "all ${#names[@]} Debian packages are installed"
    exit 0
fi
if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
    report "$absent"
    echo "to install them, as root: apt-get install --no-install-recommends" $absent
    exit 0
fi
echo "installing" $absent

# Debian starts the services that it installs (nginx, sshd, PostgreSQL, rpcbind); tests start their own, on the loopback.
if [[ ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

# shellcheck disable=SC2086  # one word a package
install_all() {
    apt-get -qq install -y --no-install-recommends $1 </dev/null >/dev/null
}

apt-get -qq update </dev/null >/dev/null || echo "apt-get update failed; the lists of packages may be old"
if ! install_all "$absent"; then
    # One name that this distribution does not have (gcc-11 of a later Debian) is enough for apt-get to install none.
    echo "apt-get failed; each package by itself"
    for name in $absent; do
        install_all "$name" 2>/dev/null || true
    done
fi
report "$(missing)"
