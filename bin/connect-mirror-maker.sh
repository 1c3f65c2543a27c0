#!/bin/sh
# Runs a mirror between clusters: connect-mirror-maker.sh [-daemon] mm2.properties
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"

if [ $# -lt 1 ]; then
    echo "USAGE: $0 [-daemon] mm2.properties" >&2
    exit 1
fi
if [ "$1" = "-daemon" ]; then
    shift
    logs=${LOG_DIR:-$(dirname "$(dirname "$(readlink -f "$0")")")/logs}
    mkdir -p "$logs" || exit 1
    nohup "$0" "$@" >"$logs/mirrorMaker.out" 2>&1 </dev/null &
    exit 0
fi
run_moldau mirror start "$@"
