#!/bin/bash
# nightly.sh SETTINGS: measures the newest commit of a branch, stores the results with it, and gives alarm where a rule
# of etude history does. For cron, on a machine that has nothing else to do:
#
#     17 2 * * *  PATH=/home/bench/etude/bin:/usr/bin:/bin /home/bench/ci/nightly.sh /home/bench/project.settings
#
# SETTINGS is read by the shell. BENCH_BUILD, BENCH_RUN, BENCH_OPTIONS: as in compare.sh, which lies beside this script.
#
# BENCH_URL      the repository, as git clone takes it
# BENCH_BRANCH   (default: main)
# BENCH_STATE    a directory: clone, tree, results, log, rules.toml, store.sqlite
# BENCH_METRIC   of which the history is judged (default: elapsed)
# BENCH_NOTIFY   a program, such as notify-mail.sh: its environment has APEVENT=failure, APREASON and APSCRIPT
# ETUDE_STORE    another store, such as postgresql://bench@host/etude
#
# Prints nothing if all is well. Exit codes: 0; 1 a rule gives alarm; 2 settings; 4 a build or a command failed;
# 5 another night still runs, or git cannot fetch; others are those of the verb that ended so.
# shellcheck disable=SC2154  # what compare.sh sets
set -euo pipefail
here=$(cd "$(dirname -- "$0")" && pwd)
# shellcheck source=examples/ci/compare.sh
. "$here/compare.sh"

# history_of NAME OPTION…: the verb on this machine's results of one benchmark.
history_of() {
    etude history "$1" --metric "${BENCH_METRIC:-elapsed}" --machine "$machine" --branch "$branch" \
        --rules rules.toml "${@:2}"
}

# gate NAME: the answer of the rules. A rule without a backtest on this history gets one first.
gate() {
    local status=0
    history_of "$1" --gate >alarm 2>&1 || status=$?
    if ((status == 2)); then
        status=0
        history_of "$1" --backtest || status=$?
        if ((status == 3)); then
            echo "$1: too few results for an alarm"
            return 0
        fi
        status=0
        history_of "$1" --gate >alarm 2>&1 || status=$?
    fi
    cat alarm
    case $status in
        0) ;;
        1)
            alarms=1
            reason="$1: $(sed -n '/^ALERT/,$p' alarm | tr '\n' ' ')"
            say "$reason"
            ;;
        *) die "$status" "$1: etude history ended with $status: $(tail -n 1 alarm)" ;;
    esac
}

# Tells whom BENCH_NOTIFY tells of an end that is not well.
# shellcheck disable=SC2317  # called by a trap
finish() {
    if (($1 != 0)) && [[ -n ${BENCH_NOTIFY:-} ]]; then
        APEVENT=failure APREASON=${reason:-ended with $1} APSCRIPT=$settings "$BENCH_NOTIFY" 3>&- 9>&- ||
            say "$BENCH_NOTIFY ended with $?: nobody was told"
    fi
}

main() {
    local commit index into name status
    (($# == 1)) || die 2 "usage: $program SETTINGS"
    settings=$1
    [[ -r $settings ]] || die 2 "$settings: cannot be read"
    set -a
    # shellcheck source=/dev/null
    . "$settings"
    set +a
    for name in BENCH_URL BENCH_STATE; do
        [[ -n ${!name:-} ]] || die 2 "$settings: $name is not set"
    done
    branch=${BENCH_BRANCH:-main}
    machine=$(uname -n)
    reason='' alarms=0
    mkdir -p "$BENCH_STATE/results" "$BENCH_STATE/log"
    cd "$BENCH_STATE"
    export ETUDE_STORE=${ETUDE_STORE:-store.sqlite}
    exec 9>lock
    flock --nonblock 9 || die 5 "another night still runs: it holds $BENCH_STATE/lock"
    trap 'finish "$?"' EXIT
    # From here on all is in the log; what a user has to know goes to where cron mails it from.
    exec 3>&2 >"log/$(date -u +%Y%m%dT%H%M%SZ).txt" 2>&1
    # shellcheck disable=SC2034  # say's
    BENCH_TO=3
    read_settings
    [[ -e clone ]] || git clone --quiet --bare -- "$BENCH_URL" clone || die 5 "$BENCH_URL: git cannot clone it"
    git -C clone fetch --quiet --prune --tags --force -- "$BENCH_URL" '+refs/heads/*:refs/heads/*' ||
        die 5 "$BENCH_URL: git cannot fetch from it"
    commit=$(git -C clone rev-parse --quiet --verify "refs/heads/$branch^{commit}") ||
        die 5 "$BENCH_URL: has no branch $branch"
    build clone "$commit" "$PWD/tree" "$PWD/log/build.txt"
    [[ -e rules.toml ]] || printf '[rule.slower]\nmetric = "%s"\n' "${BENCH_METRIC:-elapsed}" >rules.toml
    for index in "${!names[@]}"; do
        into=results/${names[index]}-$(date -u +%Y%m%dT%H%M%SZ)-${commit:0:10}
        status=0
        etude bench -o "$into" -n "${names[index]}" "${commands[index]//\{tree\}/tree}" "${options[@]}" || status=$?
        ((status == 0)) || die "$status" "${names[index]}: etude bench ended with $status; see $PWD/log"
        etude store add "$into" --repository clone --commit "$commit" --branch "$branch" --machine "$machine" \
            --tag nightly || die "$?" "${names[index]}: etude store add ended with $?; see $PWD/log"
        gate "${names[index]}"
    done
    exit "$alarms"
}

main "$@"
