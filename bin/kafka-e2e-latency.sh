#!/bin/sh
# Measure the way from producer to consumer. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau e2e-latency "$@"
