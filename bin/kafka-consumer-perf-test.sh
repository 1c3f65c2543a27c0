#!/bin/sh
# Measure a consumer. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau consumer-perf-test "$@"
