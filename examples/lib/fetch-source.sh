#!/bin/bash
# fetch-source.sh: get the source of $PACKAGE, and print the name of its file. For PRESETUP; compile.sh uses
# it, too.
#
# $PKGFILE is taken as it is. Else the Debian source package $APTSOURCE is downloaded, once, to
# $APSCRATCH/cache, with lists of our own: those of the machine stay as they are. PACKAGE=generated is made
# here, and so is what cannot be downloaded, unless PKGOFFLINE=fail.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"

set_default PACKAGE generated
set_default PKGFILE ''
set_default APTSOURCE "$PACKAGE"
set_default PKGOFFLINE generated
set_default GENERATED_FILES 20
set_default GENERATED_FUNCTIONS 20

main() {
    if [[ -n $PKGFILE ]]; then
        [[ -f $PKGFILE ]] || ap_fail "PKGFILE: there is no file $PKGFILE"
        realpath -- "$PKGFILE"
        return
    fi
    [[ $APTSOURCE =~ ^[a-z0-9][a-z0-9.+-]*$ ]] ||
        ap_fail "APTSOURCE: '$APTSOURCE' is no name of a source package"
    ap_scratch
    CACHE=$APSCRATCH/cache
    mkdir -p -- "$CACHE" || ap_fail "$CACHE could not be made"
    exec 9>>"$CACHE/lock"
    flock --wait 300 9 || ap_fail 'another worker has been downloading for five minutes'
    if [[ $PACKAGE == generated ]]; then
        generated
    elif [[ $(offline) == yes ]] || ! downloaded; then
        instead
    fi
}

# downloaded: print the file's name, after downloading it if need be.
downloaded() {
    in_cache && return 0
    command -v apt-get >/dev/null || return 1
    apt_lists && (cd -- "$CACHE" && own_apt source --download-only "$APTSOURCE") >&2 && in_cache
}

# The source as its authors released it, or a native package's only file.
in_cache() {
    local file
    for file in "$CACHE/${APTSOURCE}"_*.orig.tar.* "$CACHE/${APTSOURCE}"_*.tar.*; do
        case $file in
            *.asc | *.debian.tar.* | *'*'*) ;;
            *) printf '%s\n' "$file" && return 0 ;;
        esac
    done
    return 1
}

# The machine's own sources, asked for source packages.
apt_lists() {
    local file own=$CACHE/apt
    mkdir -p -- "$own/lists/partial" "$own/sources" "$own/cache/archives/partial" || return 1
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [[ ! -f $file ]] ||
            sed -n -E 's/^deb(-src)?([[:blank:]])/deb-src\2/p' "$file" >"$own/sources/${file##*/}.list"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [[ ! -f $file ]] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$own/sources/${file##*/}"
    done
    own_apt update >&2
}

# _apt, the user that downloads for root, cannot enter a directory that is for root only: root downloads
# itself.
own_apt() {
    local verb=$1
    shift
    apt-get -q "$verb" \
        -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$CACHE/apt/sources" \
        -o "Dir::State::Lists=$CACHE/apt/lists" -o "Dir::Cache=$CACHE/apt/cache" \
        -o "APT::Sandbox::User=$(id -un)" -o APT::Update::Error-Mode=any \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 "$@"
}

# Whether this run has found before that the package cannot be had: a run compiles one thing under one name.
offline() {
    local noted=$CACHE/$APTSOURCE.offline
    [[ -z ${APRESULTS:-} || ! -e $noted || $(<"$noted") != "$APRESULTS" ]] || echo yes
}

instead() {
    [[ $PKGOFFLINE == generated ]] || ap_fail "the source package $APTSOURCE could not be downloaded"
    [[ -z ${APRESULTS:-} ]] || printf '%s\n' "$APRESULTS" >"$CACHE/$APTSOURCE.offline"
    ap_notice "the source package $APTSOURCE could not be downloaded: a generated one is compiled instead"
    generated
}

# The archive has no dates and no owners, so that it is the same file everywhere.
generated() {
    local name=generated-$GENERATED_FILES-$GENERATED_FUNCTIONS
    if [[ ! -f $CACHE/$name.tar ]]; then
        rm -rf -- "${CACHE:?}/$name"
        "$AP_LIBRARY/generate-tree.sh" "$CACHE/$name" "$GENERATED_FILES" "$GENERATED_FUNCTIONS" || exit 1
        tar -C "$CACHE" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
            -cf "$CACHE/$name.tar.new" "$name" && mv -- "$CACHE/$name.tar.new" "$CACHE/$name.tar" || exit 1
        rm -rf -- "${CACHE:?}/$name"
    fi
    printf '%s\n' "$CACHE/$name.tar"
}

main
