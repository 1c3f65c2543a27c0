#!/bin/sh
# Compare the replicas of partitions. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau replica-verification "$@"
