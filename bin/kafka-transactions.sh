#!/bin/sh
# List, describe and abort transactions. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau transactions "$@"
