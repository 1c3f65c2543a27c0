#!/bin/sh
# Stops the brokers of this machine: kafka-server-stop.sh [--process-role=ROLE] [--node-id=N]
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau server-stop "$@"
