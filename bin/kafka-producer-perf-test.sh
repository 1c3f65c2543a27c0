#!/bin/sh
# Measure a producer. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau producer-perf-test "$@"
