#!/bin/sh
# Show and change configurations of any entity. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau configs "$@"
