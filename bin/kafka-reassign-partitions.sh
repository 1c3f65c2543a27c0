#!/bin/sh
# Move partitions between brokers and log dirs. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau reassign-partitions "$@"
