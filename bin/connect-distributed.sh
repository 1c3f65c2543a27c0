#!/bin/sh
# Runs a distributed Connect worker: connect-distributed.sh [-daemon] connect-distributed.properties
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"

if [ $# -lt 1 ]; then
    echo "USAGE: $0 [-daemon] connect-distributed.properties" >&2
    exit 1
fi
if [ "$1" = "-daemon" ]; then
    shift
    logs=${LOG_DIR:-$(dirname "$(dirname "$(readlink -f "$0")")")/logs}
    mkdir -p "$logs" || exit 1
    nohup "$0" "$@" >"$logs/connectDistributed.out" 2>&1 </dev/null &
    exit 0
fi
run_moldau connect start "$@"
