#!/bin/sh
# Runs a standalone Connect worker: connect-standalone.sh [-daemon] worker.properties [connector ...]
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"

if [ $# -lt 1 ]; then
    echo "USAGE: $0 [-daemon] connect-standalone.properties [connector1.properties connector2.json ...]" >&2
    exit 1
fi
if [ "$1" = "-daemon" ]; then
    shift
    logs=${LOG_DIR:-$(dirname "$(dirname "$(readlink -f "$0")")")/logs}
    mkdir -p "$logs" || exit 1
    nohup "$0" "$@" >"$logs/connectStandalone.out" 2>&1 </dev/null &
    exit 0
fi
run_moldau connect standalone "$@"
