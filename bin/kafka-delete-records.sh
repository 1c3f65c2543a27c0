#!/bin/sh
# Delete records below given offsets. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau delete-records "$@"
