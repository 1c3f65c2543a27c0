#!/bin/sh
# The cluster's id, endpoints, and leaving brokers. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau kafka-cluster "$@"
