#!/bin/sh
# Elect leaders of partitions. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau leader-election "$@"
