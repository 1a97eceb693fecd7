#!/bin/bash
# claims.sh DESCRIPTION BASE [HEAD]: checks the claims of a pull request. DESCRIPTION is a file with its text; the
# claims file (docs/howto/claims.md) stands in it between a line ```claims and a line ```. BASE, where HEAD (default:
# the commit that is checked out) left it, and HEAD are built in base and head, beside the claims file: commands name
# them so, as in
#
#     base = "base/sum 500000"
#     head = "head/sum 500000"
#
# CLAIMS_BUILD   a line for the shell, run in each tree
# CLAIMS_SCALE   the scale (default: full)
# CLAIMS_BUDGET  wall-clock time for all (default: 30m)
# CLAIMS_DIR     the directory that is made (default: etude-claims): base, head; out has all to keep, and comment.md
#
# Exit codes: 0 all supported, or no claims; 1 one is refuted; 2 settings; 3 no such commit, or an invalid claims file;
# 4 a build failed; 8 undecided; others are those of etude claims run. comment.py puts comment.md on the pull request.
set -euo pipefail
program=$(basename -- "$0")

# die CODE LINE: ends with the code; the line is the reason in the comment, too.
die() {
    reason=$2
    echo "$program: $2" >&2
    exit "$1"
}

# The claims file of a description; empty without one. Fails for two blocks, for one without an end, for one in a
# comment, which no reviewer sees, and for what is almost the begin of one.
claims_of() {
    tr -d '\r' <"$1" | awk '
        !inside && /<!--/ { comment = 1 }
        !inside && /-->/ { comment = 0 }
        /^ ? ? ?```[ \t]*claims[ \t]*$/ && !inside { inside = 1; blocks++; wrong += comment; next }
        /^ ? ? ?```[ \t]*$/ && inside { inside = 0; next }
        tolower($0) ~ /^[ \t]*(```+|~~~+)[ \t]*claims/ { wrong++ }
        inside { print }
        END { exit blocks > 1 || inside || wrong }'
}

# build COMMIT TREE LOG: checks the commit out and builds it.
build() {
    local status=0
    git worktree prune
    git worktree add --quiet --force --detach "$2" "$1" || die 4 "$1: git cannot check it out into $2"
    (cd "$2" && exec bash -c "$CLAIMS_BUILD") >"$3" 2>&1 </dev/null || status=$?
    ((status == 0)) || die 4 "$(basename -- "$2") (${1:0:10}) does not build: '$CLAIMS_BUILD' ended with $status"
}

# The end: the verdicts for a comment, also where something failed before there are any.
# shellcheck disable=SC2317  # called by a trap
write_comment() {
    local head
    case $1 in
        0) head=$([[ $file ]] && echo 'all supported' || echo none) ;;
        1) head='refuted' ;;
        8) head='undecided' ;;
        *) head="no verdict (exit code $1)" ;;
    esac
    {
        echo "### Claims: $head"
        echo
        echo "Base ${base:0:10}, head ${head_commit:0:10}."
        [[ -z $reason ]] || printf '\n    %s\n' "$reason"
        [[ ! -e $out/results/claims.json ]] || etude claims report "$out/results" --format markdown -o -
    } >"$out/comment.md" || echo "$program: $out/comment.md: cannot be written" >&2
    exit "$1"
}

main() {
    local dir=${CLAIMS_DIR:-etude-claims} description status=0
    reason='' base='' head_commit='' file=''
    (($# == 2 || $# == 3)) || die 2 "usage: $program DESCRIPTION BASE [HEAD]"
    [[ -r $1 ]] || die 2 "$1: cannot be read"
    description=$(realpath -- "$1")
    [[ ! -e $dir || -e $dir/of-claims.sh ]] ||
        die 2 "$dir: exists, and was not made by $program: set CLAIMS_DIR to another directory"
    rm -rf -- "$dir"
    mkdir -p "$dir/out"
    touch "$dir/of-claims.sh"
    out=$(cd "$dir/out" && pwd)
    trap 'write_comment "$?"' EXIT
    [[ -n ${CLAIMS_BUILD:-} ]] || die 2 'CLAIMS_BUILD is not set: expected the line that builds, such as make'
    command -v etude >/dev/null || die 5 'etude is not installed, or not in PATH'
    head_commit=$(git rev-parse --quiet --verify "${3:-HEAD}^{commit}") || die 3 "${3:-HEAD}: no such commit here"
    base=$(git rev-parse --quiet --verify "$2^{commit}") || die 3 "$2: no such commit here: fetch it, with its history"
    base=$(git merge-base "$base" "$head_commit") ||
        die 3 "$2: has no commit in common with ${3:-HEAD}: fetch the whole history"
    file=$(claims_of "$description") ||
        die 3 "$1: expected one block of claims, in no comment, from a line \`\`\`claims to a line \`\`\`"
    [[ $file ]] || exit 0
    printf '%s\n' "$file" >"$dir/claims.toml"
    # Names of one length: a program may run faster or slower by how long its path is.
    build "$base" "$dir/base" "$out/base-build.txt"
    build "$head_commit" "$dir/head" "$out/head-build.txt"
    (cd "$dir" && etude claims run claims.toml --scale "${CLAIMS_SCALE:-full}" --budget "${CLAIMS_BUDGET:-30m}" \
        -o out/results) 2>&1 | tee "$out/claims.txt" || status=${PIPESTATUS[0]}
    case $status in
        0 | 1 | 8) etude claims report "$out/results" -o "$out/claims.html" ;;
        *) reason=$(tail -n 1 "$out/claims.txt") ;;
    esac
    exit "$status"
}

main "$@"
