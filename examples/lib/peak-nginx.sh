#!/bin/bash
# peak-nginx.sh PLACE CONF PORT: an nginx of one's own in PLACE, for `etude peak`; runs until it is ended.
#
# /index.html is held to what CONF says, /alive is not.
set -eu
place=$1 conf=$2 port=$3
PATH=$PATH:/usr/sbin
command -v nginx >/dev/null || {
    echo 'peak-nginx.sh: no program nginx: install the Debian package nginx-light' >&2
    exit 1
}
prefix=$place/nginx
mkdir -p "$prefix/html"
head -c 1000 /dev/zero | tr '\0' x >"$prefix/html/index.html"
echo alive >"$prefix/html/alive"
cp "$conf" "$prefix/nginx.conf"
cat >"$prefix/listen.conf" <<END
server {
    listen 127.0.0.1:$port;
    location / { root html; limit_req zone=all burst=400; }
    location /alive { root html; }
}
END
# Started by root, its workers are user nobody, who may not reach PLACE.
if ((EUID == 0)); then echo "user $(id -un);" >>"$prefix/nginx.conf"; fi
exec nginx -p "$prefix" -c "$prefix/nginx.conf" -e stderr
