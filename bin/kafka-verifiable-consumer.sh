#!/bin/sh
# Consume and report everything that happens. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau verifiable-consumer "$@"
