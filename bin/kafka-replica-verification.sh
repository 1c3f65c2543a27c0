#!/bin/sh
# Compare the replicas of partitions. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau replica-verification "$@"
