#!/bin/sh
# Add, remove and list access rights. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau acls "$@"
