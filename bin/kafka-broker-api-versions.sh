#!/bin/sh
# Which requests every broker understands. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau broker-api-versions "$@"
