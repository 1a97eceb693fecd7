#!/bin/sh
# ok.sh: the end of an experiment: whoever is named in APNOTIFY (mail, url, or both) is told. What QUIET had
# stopped runs again by then. A notice that fails does not make the experiment one that failed.
set -u
APEVENT=completion
export APEVENT

library=$(dirname -- "$0")
for way in ${APNOTIFY:-}; do
    case $way in
        mail | url) "$library/notify-$way.sh" || echo "ok.sh: no notice by $way was sent" >&2 ;;
        *) echo "ok.sh: APNOTIFY names '$way', expected mail or url" >&2 ;;
    esac
done
exit 0
