#!/bin/sh
# Measure share consumers. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau share-consumer-perf-test "$@"
