#!/bin/sh
# Consume and report everything that happens. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau verifiable-consumer "$@"
