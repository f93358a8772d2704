#!/bin/sh
# Start or stop the daemon on every host of a list, over ssh, all at the same time, as the user who logs in there.
#   each_host.sh start HOSTFILE TOKENFILE
#   each_host.sh stop HOSTFILE
# In the environment: SSH (ssh), DYNOLOG (dynolog, beside its dyno), DYNOLOG_FLAGS (more flags for the daemon).
# HOSTFILE has a host a line, as ssh takes it; # begins a comment. Exit code 1 when it went wrong on some host.
set -u
usage() { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
action=$1 hosts=$2 token=${3:-}
[ -r "$hosts" ] || { echo "$0: $hosts cannot be read" >&2; exit 2; }
dynolog=${DYNOLOG:-dynolog}

# Both run on the host, by its sh. $1 is the program, $2 more flags.
start='
umask 077
dyno=${1%dynolog}dyno
"$dyno" --timeout 5 version >/dev/null 2>&1 && { echo "runs already"; exit 0; }
mkdir -p "$HOME/.dynolog" && cd "$HOME/.dynolog" && cat > token || exit 1
nohup "$1" --enable_ipc_monitor --rpc_bind_address=:: --rpc_token_file="$HOME/.dynolog/token" --rpc_unix_socket="$HOME/.dynolog/rpc.sock" $2 \
    </dev/null >>log 2>&1 &
echo $! > pid
tries=0
until "$dyno" --timeout 5 version >/dev/null 2>&1; do
    tries=$((tries + 1))
    kill -0 "$(cat pid)" 2>/dev/null && [ $tries -lt 150 ] || { tail -n 3 log; exit 1; }
    sleep 0.2
done
echo started'
stop='
cd "$HOME/.dynolog" 2>/dev/null && [ -s pid ] || { echo "none was started from here"; exit 0; }
pid=$(cat pid)
# The number may be that of another process by now.
tr "\\0" " " 2>/dev/null < "/proc/$pid/cmdline" | grep -q dynolog && kill "$pid" && while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
rm -f pid token
echo stopped'
case $action in
start) [ -r "$token" ] || usage; script=$start input=$token ;;
stop) script=$stop input=/dev/null ;;
*) usage ;;
esac
# For the other sh: a text in single quotes.
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
command="sh -c $(quoted "$script") sh $(quoted "$dynolog") $(quoted "${DYNOLOG_FLAGS:-}")"

failed=$(mktemp)
trap 'rm -f "$failed"' EXIT
sed 's/#.*//' "$hosts" | {
    while read -r host _; do
        [ -n "$host" ] || continue
        {
            said=$(${SSH:-ssh} -o BatchMode=yes -o ConnectTimeout=10 "$host" "$command" < "$input" 2>&1) || echo "$host" >> "$failed"
            echo "$said" | sed "s|^|$host: |"
        } &
    done
    wait
}
! [ -s "$failed" ]
