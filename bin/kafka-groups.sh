#!/bin/sh
# List groups of all types. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau groups "$@"
