#!/bin/bash
# compare.sh BASE [HEAD]: builds two commits of the repository in which it is run, measures both interleaved, and ends
# with the answer. github-actions.yml and gitlab-ci.yml call it; it runs as well by hand:
#
#     BENCH_BUILD='make -j2' BENCH_RUN='sum: {tree}/sum 1000' ci/compare.sh main
#
# BASE is where HEAD (default: the commit that is checked out) left it: changes that BASE got since are not measured.
#
# BENCH_BUILD    a line for the shell, run in each tree
# BENCH_RUN      benchmarks, one a line, as NAME: COMMAND; {tree} is the directory of the built commit
# BENCH_BOUND    the job fails where it surely holds (default: elapsed > baseline * 1.05; --fail-if of etude bench)
# BENCH_UNDECIDED  what the job does where the data do not decide that: pass (default) or fail; the comment has it
# BENCH_OPTIONS  other options of etude bench (default: --time 60 --max-trials 500)
# BENCH_DIR      the directory that is made (default: etude-ci): base, head; out has all to keep, and comment.md
#
# Exit codes: 0 within the bound; 1 beyond it; 2 settings; 3 no such commit; 4 a build or a command failed;
# 8 undecided, with BENCH_UNDECIDED=fail; others are those of etude bench.
set -euo pipefail
program=$(basename -- "$0")
options=()
names=()
commands=()

# To where a user looks, whatever standard error is.
say() {
    echo "$program: $*" >&"${BENCH_TO:-2}"
}

# die CODE LINE: ends with the code; the line is the reason in the comment, too.
die() {
    reason=$2
    say "$2"
    exit "$1"
}

# Reads the settings that measuring takes into names, commands and options.
read_settings() {
    local line name
    [[ -n ${BENCH_BUILD:-} ]] || die 2 'BENCH_BUILD is not set: expected the line that builds, such as make'
    while IFS= read -r line; do
        [[ $line =~ ^[[:space:]]*(#.*)?$ ]] && continue
        [[ $line =~ ^[[:space:]]*([A-Za-z0-9][A-Za-z0-9._-]*):[[:space:]]+(.*)$ ]] ||
            die 2 "BENCH_RUN: no benchmark: $line: expected NAME: COMMAND"
        name=${BASH_REMATCH[1]}
        [[ " ${names[*]} " != *" $name "* ]] || die 2 "BENCH_RUN: two benchmarks are named $name"
        names+=("$name")
        commands+=("${BASH_REMATCH[2]}")
    done <<<"${BENCH_RUN:-}"
    ((${#names[@]})) || die 2 'BENCH_RUN has no benchmark: expected lines NAME: COMMAND'
    eval "options=(${BENCH_OPTIONS---time 60 --max-trials 500})" 2>/dev/null ||
        die 2 "BENCH_OPTIONS cannot be split into words: $BENCH_OPTIONS"
    command -v etude >/dev/null || die 5 'etude is not installed, or not in PATH'
}

# build REPOSITORY COMMIT TREE LOG: checks the commit out and builds it.
build() {
    local status=0
    rm -rf -- "$3"
    git -C "$1" worktree prune
    git -C "$1" worktree add --quiet --force --detach "$3" "$2" || die 4 "$2: git cannot check it out into $3"
    # Descriptors of ours, a lock among them, are not for what a build leaves running.
    (cd "$3" && exec bash -c "$BENCH_BUILD" 3>&- 9>&-) >"$4" 2>&1 </dev/null || status=$?
    ((status == 0)) ||
        die 4 "$(basename -- "$3") (${2:0:10}) does not build: '$BENCH_BUILD' ended with $status; its output is $4"
}

# The end: the verdict for a comment, also where something failed before there is one.
# shellcheck disable=SC2317  # called by a trap
write_comment() {
    local head word
    case $1 in
        0) head=$([[ $undecided ]] && echo 'undecided, which passes' || echo 'within the bound') ;;
        1) head='beyond the bound' ;;
        8) head='undecided, which fails' ;;
        *) head="no verdict (exit code $1)" ;;
    esac
    {
        echo "<!-- code $1${undecided:+ undecided} -->"
        echo "### Benchmark: $head"
        echo
        [[ -z $base ]] || echo "Fails if \`$bound\`; base ${base:0:10}, head ${head_commit:0:10}."
        [[ -z $reason ]] || printf '\n    %s\n' "$reason"
        echo
        for word in "${answers[@]}"; do echo "- $word"; done
        if [[ $undecided ]]; then
            echo
            echo "Undecided: the interval holds the bound, or the trials are too few. BENCH_UNDECIDED=$on_undecided" \
                'decides the job; BENCH_OPTIONS allows more trials.'
        fi
        echo
        ((${#results[@]} == 0)) || etude export "${results[@]}" --format markdown
    } >"$out/comment.md" || say "$out/comment.md: cannot be written"
    exit "$1"
}

# judge NAME COMMAND: measures one benchmark on both trees.
judge() {
    local status=0
    etude bench -o "out/$1" -n "$1 base" "${2//\{tree\}/base}" -n "$1 head" "${2//\{tree\}/head}" \
        --fail-if "$bound" --undecided fail "${options[@]}" 2>&1 | tee "out/$1.txt" || status=${PIPESTATUS[0]}
    case $status in
        0) answers+=("$1: within the bound") ;;
        1) answers+=("$1: **beyond the bound**") ;;
        8) answers+=("$1: **undecided**") undecided=yes ;;
        *) die "$status" "$1: $(tail -n 1 "out/$1.txt")" ;;
    esac
    results+=("out/$1")
    etude report "out/$1" -o "out/$1.html"
    ((status == 8)) && [[ $on_undecided == pass ]] && status=0
    # 1 is worth more than 8, and 8 more than 0.
    ((status == 0 || code == 1)) || code=$status
}

main() {
    local index
    dir=${BENCH_DIR:-etude-ci}
    bound=${BENCH_BOUND:-elapsed > baseline * 1.05}
    on_undecided=${BENCH_UNDECIDED:-pass}
    reason='' base='' head_commit='' undecided='' code=0
    answers=()
    results=()
    (($# == 1 || $# == 2)) || die 2 "usage: $program BASE [HEAD]"
    [[ ! -e $dir || -e $dir/of-compare.sh ]] ||
        die 2 "$dir: exists, and was not made by $program: set BENCH_DIR to another directory"
    rm -rf -- "$dir"
    mkdir -p "$dir/out"
    touch "$dir/of-compare.sh"
    echo '*' >"$dir/.gitignore"
    out=$(cd "$dir/out" && pwd)
    trap 'write_comment "$?"' EXIT
    [[ $on_undecided == pass || $on_undecided == fail ]] ||
        die 2 "BENCH_UNDECIDED is $on_undecided: expected pass or fail"
    read_settings
    head_commit=$(git rev-parse --quiet --verify "${2:-HEAD}^{commit}") || die 3 "${2:-HEAD}: no such commit here"
    base=$(git rev-parse --quiet --verify "$1^{commit}") ||
        die 3 "$1: no such commit here: fetch it, with its history"
    base=$(git merge-base "$base" "$head_commit") ||
        die 3 "$1: has no commit in common with ${2:-HEAD}: fetch the whole history"
    # Names of one length: a program may run faster or slower by how long its path is.
    build . "$base" "$dir/base" "$dir/out/base-build.txt"
    build . "$head_commit" "$dir/head" "$dir/out/head-build.txt"
    cd "$dir"
    for index in "${!names[@]}"; do
        judge "${names[index]}" "${commands[index]}"
    done
    exit "$code"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    main "$@"
fi
