#!/bin/sh
# notify-url.sh: tells $APURL, by a POST of JSON, that an experiment has failed or is complete; a script for
# FASTFAIL. It gives up after APURLTIMEOUT seconds (default 10). Needs curl or python3.
set -u

say() {
    echo "notify-url.sh: $*" >&2
}

# A string of JSON. Escaped are quotes, backslashes, ends of lines and tabs; other control characters are left
# out.
json() {
    printf '"%s"' "$(printf '%s' "$1" | iconv -c -f UTF-8 -t UTF-8 | LC_ALL=C tr -d '\000-\010\013-\037\177' |
        LC_ALL=C sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/\\t/g' |
        LC_ALL=C awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }')"
}

# Its configuration comes by standard input: an address with a secret in it is not for the list of processes.
by_curl() {
    quoted=$(printf '%s' "$body" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g')
    printf 'url = "%s"\nheader = "Content-Type: application/json"\ndata-binary = "%s"\n' "$APURL" "$quoted" |
        curl --config - --proto =http,https --fail --silent --show-error --output /dev/null \
            --max-time "$timeout"
}

by_python() {
    BODY=$body SECONDS_MOST=$timeout python3 - <<'END'
import os, sys, urllib.request

request = urllib.request.Request(
    os.environ["APURL"], os.environ["BODY"].encode(), {"Content-Type": "application/json"}, method="POST"
)
try:
    with urllib.request.urlopen(request, timeout=float(os.environ["SECONDS_MOST"])) as answer:
        answer.read()
except (OSError, ValueError) as error:
    sys.exit(f"{error}")
END
}

case ${APURL:-} in
    '') say 'nobody is told: set APURL to an address of http or https' && exit 1 ;;
    *[\"\\]* | *[[:cntrl:]]* | *' '*) say 'APURL holds what no address may hold' && exit 1 ;;
    http://* | https://*) ;;
    *) say 'APURL is no address of http or https' && exit 1 ;;
esac
timeout=${APURLTIMEOUT:-10}
event=${APEVENT:-completion}
name=$(basename -- "${APSCRIPT:-an experiment}")
case $event in
    failure) text="$name failed: ${APREASON:-no reason given}" ;;
    *) text="$name is complete" ;;
esac
# member NAME VALUE: one of the object's, with the comma behind it.
member() {
    printf '"%s": %s, ' "$1" "$(json "$2")"
}

body="{$(member text "$text")$(member event "$event")$(member reason "${APREASON:-}")"
body="$body$(member test "${APTEST:-}")$(member results "${APRESULTS:-}")$(member script "${APSCRIPT:-}")"
body="$body$(member host "$(uname -n)")\"time\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"}"
if command -v curl >/dev/null; then
    by_curl
elif command -v python3 >/dev/null; then
    by_python
else
    say 'needs curl or python3' && exit 1
fi || {
    say 'the address was not told'
    exit 1
}
