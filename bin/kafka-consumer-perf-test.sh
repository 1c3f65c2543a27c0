#!/bin/sh
# Measure a consumer. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau consumer-perf-test "$@"
