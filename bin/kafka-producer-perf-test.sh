#!/bin/sh
# Measure a producer. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau producer-perf-test "$@"
