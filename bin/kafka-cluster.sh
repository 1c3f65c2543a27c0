#!/bin/sh
# The cluster's id, endpoints, and leaving brokers. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau kafka-cluster "$@"
