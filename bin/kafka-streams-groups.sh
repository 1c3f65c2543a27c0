#!/bin/sh
# List, describe, delete or reset streams groups. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau streams-groups "$@"
