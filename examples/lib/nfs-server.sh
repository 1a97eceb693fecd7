#!/bin/bash
# nfs-server.sh WHAT [ARGUMENT…]: an NFS server and its clients' networks, in namespaces of this machine's kernel.
#
#   start            networks and server, unless they run with these settings already
#   restart          a fresh server; what an earlier run left is ended first
#   stop             end the server, and remove the networks
#   status           what runs; exits with 0, 3 (nothing) or 1 (it has died: why)
#   client N CMD …   run a command where client N is
#   shell HOST LINE  run a line where the server is: this is an APREMOTESHELL
#
# The server is ganesha, a program, or the kernel's (NFSDAEMON). It has a network, mounts and, if it is ganesha,
# processes of its own: its run and recovery directories are in $NFSPLACE, and all of it ends with its first
# process. docs/howto/nfs.md has the rest. Needs root.
set -u
# shellcheck source=examples/lib/commonsettings
. "${BASH_SOURCE[0]%/*}/commonsettings"
# shellcheck source=examples/lib/nfsfunctions
. "$AP_LIBRARY/nfsfunctions"
PATH=$PATH:/usr/sbin:/sbin

main() {
    local what=${1:-}
    (($# == 0)) || shift
    case $what in
        start | restart | stop | status) (($# == 0)) || ap_fail "expected no arguments behind $what, not '$*'" ;;
        client) (($# > 1)) || ap_fail 'expected a number and a command: nfs-server.sh client N CMD …' ;;
        shell) (($# > 1)) || ap_fail 'expected a host and a line: nfs-server.sh shell HOST LINE' ;;
        inside) ;;
        *) ap_fail "expected start, restart, stop, status, client or shell, not '$what'" ;;
    esac
    nfs_settings
    case $what in
        client | shell | inside | status) "do_$what" "$@" ;;
        *) with_lock "do_$what" ;;
    esac
}

# One at a time, and not while a run that lives uses the server. Nothing that stays may keep the lock.
with_lock() {
    local owner
    ((EUID == 0)) || ap_fail 'only root may make namespaces: run it as root'
    nfs_place
    exec 9>>"$NFSPLACE/lock"
    flock --wait 60 9 || ap_fail "$NFSPLACE is in use by another nfs-server.sh"
    owner=$(nfs_noted owner | head -n 1)
    if [[ -n $owner && $owner != "${APRESULTS:-}" && -d $owner ]]; then
        flock --shared --wait 10 "$owner" true ||
            ap_fail "$NFSPLACE is in use by the run of $owner; set NFSPLACE, NFSNAME and NFSNET for this one"
    fi
    "$@"
}

# --- start, stop ------------------------------------------------------------------------------------

do_start() {
    if [[ $(nfs_noted settings) == "$(nfs_all_settings)" ]] && nfs_alive; then
        return
    fi
    do_restart
}

do_restart() {
    check_programs
    check_names
    end_server
    if [[ $(nfs_noted network) != "$NFSNAME $NFSNET $NFSCLIENTS" ]] || ! networks_are_there; then
        do_stop
        make_networks
    fi
    start_server
}

do_stop() {
    local name
    end_server
    while IFS= read -r name; do
        [[ ! -e /run/netns/$name ]] || ip netns del "$name" || ap_fail "the network $name could not be removed"
    done < <(nfs_noted netns)
    rm -f -- "$NFSPLACE/state"
}

do_status() {
    local pid
    if [[ -z $(nfs_noted process) ]]; then
        echo "nothing runs in $NFSPLACE"
        exit 3
    fi
    nfs_alive || ap_fail "the server has died: $(nfs_reason)"
    read -r pid _ < <(nfs_noted process)
    echo "$NFSDAEMON runs (process $pid, NFS ${NFSVERSIONS// / and }) at $NFSSERVER for $NFSCLIENTS client(s)"
}

do_client() {
    local name="$NFSNAME-client$1"
    [[ -e /run/netns/$name ]] || ap_fail "there is no client $1; first: nfs-server.sh start (NFSCLIENTS=$NFSCLIENTS)"
    shift
    exec nsenter --net="/run/netns/$name" -- "$@"
}

# HOST is for the face of ssh. The kernel's threads are nobody's processes: those are looked for outside.
do_shell() {
    local pid
    nfs_alive || ap_fail "the server has died: $(nfs_reason)"
    shift
    if [[ $NFSDAEMON == kernel ]]; then
        exec nsenter --net="/run/netns/$NFSNAME-server" -- /bin/sh -c "$*"
    fi
    pid=$(nfs_init) || ap_fail "the server has died: $(nfs_reason)"
    exec nsenter --target "$pid" --net --mount --pid -- /bin/sh -c "$*"
}

# --- before anything is made ------------------------------------------------------------------------

check_programs() {
    ap_need ip iproute2
    ap_need nsenter util-linux
    if [[ $NFSDAEMON == kernel ]]; then
        ap_need rpc.nfsd nfs-kernel-server
        ap_need rpcbind rpcbind
        grep -q '\bnfsd$' /proc/filesystems || modprobe -q nfsd ||
            ap_fail 'this kernel has no NFS server (nfsd); NFSDAEMON=ganesha is a program instead'
        return
    fi
    ap_need ganesha.nfsd nfs-ganesha
    [[ $NFSVERSIONS != *3* ]] || ap_need rpcbind rpcbind
    compgen -G '/usr/lib/*/ganesha/libfsalvfs.so' >/dev/null ||
        ap_fail 'ganesha cannot export directories; that is in the Debian package nfs-ganesha-vfs'
    compgen -G '/usr/lib/*/ganesha/libfsalmem.so' >/dev/null ||
        ap_fail 'ganesha cannot export memory; that is in the Debian package nfs-ganesha-mem'
}

# A network of that name that is not noted is somebody else's.
check_names() {
    local name
    for name in $(network_names); do
        [[ ! -e /run/netns/$name ]] || nfs_noted netns | grep -qxF "$name" ||
            ap_fail "a network namespace $name is there, and not from here; set NFSNAME, or: ip netns del $name"
    done
}

network_names() {
    local number
    echo "$NFSNAME-server"
    for ((number = 1; number <= NFSCLIENTS; number++)); do
        echo "$NFSNAME-client$number"
    done
}

# --- networks: a bridge where the server is, and a pair of ends to each client -----------------------

networks_are_there() {
    local name
    for name in $(network_names); do
        [[ -e /run/netns/$name ]] || return 1
    done
}

make_networks() {
    local server=$NFSNAME-server number
    make_network "$server"
    nfs_do ip -n "$server" link add nfs0 type bridge
    nfs_do ip -n "$server" addr add "$NFSSERVER/24" dev nfs0
    nfs_do ip -n "$server" link set nfs0 up
    for ((number = 1; number <= NFSCLIENTS; number++)); do
        make_network "$NFSNAME-client$number"
        nfs_do ip link add name nfs0 netns "$NFSNAME-client$number" type veth peer name "nfs$number" netns "$server"
        nfs_do ip -n "$server" link set "nfs$number" master nfs0 up
        nfs_do ip -n "$NFSNAME-client$number" addr add "$NFSNET.$((number + 1))/24" dev nfs0
        nfs_do ip -n "$NFSNAME-client$number" link set nfs0 up
    done
    nfs_note network "$NFSNAME $NFSNET $NFSCLIENTS"
}

make_network() {
    nfs_note netns "$1"
    nfs_do ip netns add "$1"
    nfs_do ip -n "$1" link set lo up
}

# --- the server -------------------------------------------------------------------------------------

start_server() {
    local self=${BASH_SOURCE[0]} pid
    [[ $self == /* ]] || self=$PWD/$self
    check_port
    mkdir -p -- "$NFSPLACE/run" "$NFSPLACE/lib" "$NFSROOT" || ap_fail "NFSROOT: $NFSROOT cannot be made"
    rm -rf -- "$NFSPLACE/server.log" "${NFSPLACE:?}/run/"* "${NFSPLACE:?}/lib/"*
    nfs_note owner "${APRESULTS:-}"
    nfs_note settings "$(nfs_all_settings)"
    # It notes itself, and is then what it runs: nothing is started that is not noted.
    (
        pid=$BASHPID # within $(…) it would be another's
        nfs_note process "$pid $(nfs_born "$pid")"
        exec setsid nsenter --net="/run/netns/$NFSNAME-server" -- \
            unshare --mount --propagation slave --pid --fork --kill-child --mount-proc -- \
            "$self" inside </dev/null >>"$NFSPLACE/server.log" 2>&1 9>&-
    ) &
    until [[ -n $(nfs_noted process) ]] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
    wait_until_it_serves
}

# In a network of its own, only what was started there by hand can hold it.
check_port() {
    local holder
    holder=$(ip netns exec "$NFSNAME-server" ss -Hltnp "sport = :$NFSPORT" | head -n 1)
    [[ -z $holder ]] || ap_fail "NFSPORT: $NFSPORT is taken in $NFSNAME-server: ${holder##*users:}"
}

wait_until_it_serves() {
    local until=$((SECONDS + NFSWAIT))
    until [[ -e $NFSPLACE/run/serves ]]; do
        nfs_alive || fail_to_start "the server did not start: $(nfs_reason)"
        ((SECONDS < until)) || fail_to_start "the server did not start within NFSWAIT=$NFSWAIT s: $(nfs_reason)"
        sleep 0.2 # each look starts programs, for which the server waits on a slow machine
    done
}

fail_to_start() {
    end_server
    ap_fail "$1 ($NFSPLACE/server.log)"
}

# Ganesha first, that it may end in order; then, at the latest, the first process and all that is below it.
end_server() {
    local pid init until=$((SECONDS + NFSWAIT))
    if [[ $NFSDAEMON == kernel || $(nfs_noted settings) == kernel* ]]; then
        end_kernel_server
    fi
    if nfs_process_is_there; then
        read -r pid _ < <(nfs_noted process)
        if init=$(nfs_init) && kill -TERM "$init" 2>/dev/null; then
            while nfs_process_is_there && ((SECONDS < until)); do sleep 0.1; done
        fi
        ! nfs_process_is_there || kill -KILL "$pid"
        while nfs_process_is_there; do sleep 0.02; done
    fi
    nfs_forget process owner settings
}

# Its threads are in the kernel and end with no process; each network has its own number of them.
end_kernel_server() {
    [[ -e /run/netns/$NFSNAME-server ]] && nfs_noted netns | grep -qxF "$NFSNAME-server" || return 0
    # shellcheck disable=SC2016  # for the shell that is started
    ip netns exec "$NFSNAME-server" unshare --mount /bin/sh -c '
        mount -t nfsd nfsd /proc/fs/nfsd 2>/dev/null && echo 0 >/proc/fs/nfsd/threads' ||
        ap_say "the kernel's server in $NFSNAME-server could not be told to end"
}

# --- inside: the first process of the server's ------------------------------------------------------

do_inside() {
    local ended='' status=0 name
    { mount --bind "$NFSPLACE/run" /run && mount --bind "$NFSPLACE/lib" /var/lib/nfs; } ||
        nfs_die 'its run and recovery directories could not be mounted'
    mkdir -p /run/ganesha /run/rpcbind /var/lib/nfs/ganesha /var/lib/nfs/sm /var/lib/nfs/v4recovery
    touch /var/lib/nfs/etab /var/lib/nfs/rmtab
    trap 'kill $(jobs -p) 2>/dev/null; wait; exit 0' TERM
    [[ $NFSVERSIONS != *3* ]] || start_rpcbind
    "inside_$NFSDAEMON"
    touch /run/serves
    wait -n -p ended || status=$?
    name=${PROGRAMS[$ended]:-a program of the server}
    ((status <= 128)) || nfs_die "$name was ended by signal $((status - 128))"
    nfs_die "$name has ended with $status"
}

declare -A PROGRAMS=() # by process number

start_rpcbind() {
    rpcbind -f -w &
    PROGRAMS[$!]=rpcbind
    for ((tries = 0; tries < NFSWAIT * 50; tries++)); do
        [[ ! -S /run/rpcbind.sock ]] || return 0
        kill -0 $! 2>/dev/null || break
        sleep 0.02
    done
    nfs_die 'rpcbind did not start'
}

inside_ganesha() {
    ganesha_configuration >/run/ganesha.conf || exit 1
    ganesha.nfsd -F -L /run/ganesha.log -f /run/ganesha.conf -N NIV_EVENT -p /run/ganesha.pid &
    PROGRAMS[$!]=ganesha
    for ((tries = 0; tries < NFSWAIT * 50; tries++)); do
        grep -q 'NFS SERVER INITIALIZED' /run/ganesha.log 2>/dev/null && return
        kill -0 $! 2>/dev/null || nfs_die 'ganesha has ended at its start'
        sleep 0.02
    done
    nfs_die 'ganesha is not ready'
}

# Threads in the kernel, and the program that answers who may mount.
inside_kernel() {
    local options=(--port "$NFSPORT" --host "$NFSSERVER" --grace-time 10 --lease-time 10) version
    mount -t nfsd nfsd /proc/fs/nfsd || nfs_die 'the file system nfsd could not be mounted'
    exportfs -o rw,no_root_squash,no_subtree_check,insecure,fsid=1 "*:$NFSROOT" || nfs_die "exportfs refused $NFSROOT"
    rpc.mountd --foreground --port 20048 &
    PROGRAMS[$!]=rpc.mountd
    for version in 3 4; do
        [[ $NFSVERSIONS == *$version* ]] || options+=(--no-nfs-version "$version")
    done
    rpc.nfsd "${options[@]}" "$NFSTHREADS" || nfs_die 'rpc.nfsd did not start the threads'
    [[ $NFSVERSIONS != *4* ]] || wait_for_grace
}

# In its first 10 s a server of version 4 opens files for clients of before alone, which a trial must not measure.
wait_for_grace() {
    local tries=0 ended=''
    until read -r ended </proc/fs/nfsd/v4_end_grace && [[ $ended == Y ]]; do
        ((tries++ < 60)) || nfs_die 'it still waits for clients of before, after 15 s'
        sleep 0.25
    done
}

main "$@"
