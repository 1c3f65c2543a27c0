#!/bin/sh
# Print the records of topics. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau console-consumer "$@"
