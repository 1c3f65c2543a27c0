#!/bin/sh
# Look up offsets of partitions, also by time. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau get-offsets "$@"
