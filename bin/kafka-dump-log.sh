#!/bin/sh
# Print log segments, indexes and snapshots. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau dump-log "$@"
