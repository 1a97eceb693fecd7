#!/bin/sh
# noservices.sh: says which services run here that could disturb a benchmark. It stops none of them: QUIET does,
# behind it in common.inc, if whoever knows what this machine is for has asked for it in APQUIET.
set -u

services='cron crond anacron atd exim4 master sendmail lpd cupsd inetd xinetd rsyslogd'
services="$services unattended-upgr packagekitd snapd"
found=
for comm in /proc/[0-9]*/comm; do
    name=$(cat "$comm" 2>/dev/null) || continue
    case " $services " in
        *" $name "*)
            case " $found " in *" $name "*) ;; *) found="$found $name" ;; esac
            ;;
    esac
done
if [ -n "$found" ]; then
    echo "noservices.sh: running here:$found; nothing was stopped; APQUIET=services asks for it"
else
    echo 'noservices.sh: none of the services that it knows runs here; nothing was stopped'
fi
if [ "$(wc -l </proc/swaps)" -gt 1 ]; then
    echo 'noservices.sh: swap is in use, and was left on; APQUIET=swap asks for it'
fi
