#!/bin/sh
# Create, delete, describe or change topics. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau topics "$@"
