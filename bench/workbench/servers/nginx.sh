#!/bin/bash
# nginx.sh PLACE PORT: an nginx of one's own with one file of 1000 bytes; runs until it is ended.
set -eu
prefix=$1/nginx
mkdir -p "$prefix/html"
head -c 1000 /dev/zero | tr '\0' x >"$prefix/html/index.html"
{
    if ((EUID == 0)); then echo "user $(id -un);"; fi # else its workers are user nobody, who may not reach PLACE
    cat <<END
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
    server { listen 127.0.0.1:$2; location / { root html; } }
}
END
} >"$prefix/nginx.conf"
exec /usr/sbin/nginx -p "$prefix" -c "$prefix/nginx.conf" -e stderr
