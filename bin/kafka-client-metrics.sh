#!/bin/sh
# Which metrics clients are asked for. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau client-metrics "$@"
