#!/bin/sh
# notify-mail.sh: tells $APMAILTO by mail that an experiment has failed or is complete; a script for FASTFAIL.
# Sent by ${APSENDMAIL:-sendmail} -t, from APEVENT, APREASON, APTEST, APRESULTS and APSCRIPT.
set -u
PATH=$PATH:/usr/sbin:/usr/lib

say() {
    echo "notify-mail.sh: $*" >&2
}

# One line, of characters that a header may hold.
line() {
    printf '%s' "$1" | tr '\n\r\t' '   ' | LC_ALL=C tr -d '\000-\037\177' |
        LC_ALL=C tr '\200-\377' '?' | cut -c 1-200
}

if [ -z "${APMAILTO:-}" ]; then
    say 'nobody is told: set APMAILTO to an address'
    exit 1
fi
host=$(uname -n)
name=$(basename -- "${APSCRIPT:-an experiment}")
case ${APEVENT:-completion} in
    failure) what=failed why=${APREASON:-no reason given} ;;
    *) what='is complete' why='all of it has run' ;;
esac
# shellcheck disable=SC2086  # a program with its options
if {
    printf 'To: %s\n' "$(line "$APMAILTO")"
    printf 'Subject: %s %s on %s\n' "$(line "$name")" "$what" "$(line "$host")"
    printf 'Auto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n'
    printf '%s %s: %s\n\n' "$name" "$what" "$why"
    printf 'test: %s\nresults: %s\nscript: %s\nhost: %s\ntime: %s\n' "${APTEST:-none}" "${APRESULTS:-none}" \
        "${APSCRIPT:-none}" "$host" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
} | timeout 60 ${APSENDMAIL:-sendmail} -t; then
    exit 0
else
    status=$?
    say "no mail was sent: ${APSENDMAIL:-sendmail} -t ended with $status"
    exit 1
fi
