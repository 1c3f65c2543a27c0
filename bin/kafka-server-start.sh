#!/bin/sh
# Starts a broker: kafka-server-start.sh [-daemon] server.properties [--override property=value]*
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"

if [ $# -lt 1 ]; then
    echo "USAGE: $0 [-daemon] server.properties [--override property=value]*" >&2
    exit 1
fi
if [ "$1" = "-daemon" ]; then
    shift
    # Where Kafka's scripts put it: LOG_DIR, or the folder logs beside bin.
    logs=${LOG_DIR:-$(dirname "$(dirname "$(readlink -f "$0")")")/logs}
    mkdir -p "$logs" || exit 1
    nohup "$0" "$@" >"$logs/kafkaServer.out" 2>&1 </dev/null &
    exit 0
fi
run_moldau server-start "$@"
