#!/bin/bash
# peak-nginx.sh PLACE PORT [RATE]: an nginx of one's own in PLACE, for `etude peak`; runs until it is ended.
#
# /index.html is a file of 1000 bytes. With RATE nginx answers that many requests for it a second and lets others wait,
# 400 at most, so that the peak is known; /alive is not held.
set -eu
place=$1 port=$2 rate=${3:-}
PATH=$PATH:/usr/sbin
command -v nginx >/dev/null || {
    echo 'peak-nginx.sh: no program nginx: install the Debian package nginx-light' >&2
    exit 1
}
prefix=$place/nginx
mkdir -p "$prefix/html"
head -c 1000 /dev/zero | tr '\0' x >"$prefix/html/index.html"
echo alive >"$prefix/html/alive"
{
    # Started by root, its workers are user nobody, who may not reach PLACE.
    if ((EUID == 0)); then echo "user $(id -un);"; fi
    cat <<CONF
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path client_body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
CONF
    if [[ $rate ]]; then
        echo "    limit_req_zone \$server_port zone=all:1m rate=${rate}r/s;"
        echo "    limit_req_log_level info;"
    fi
    cat <<CONF
    server {
        listen 127.0.0.1:$port;
        location / { root html; ${rate:+limit_req zone=all burst=400;} }
        location /alive { root html; }
    }
}
CONF
} >"$prefix/nginx.conf"
ulimit -Sn 8192 2>/dev/null || true # a descriptor for each connection
exec nginx -p "$prefix" -c "$prefix/nginx.conf" -e stderr
