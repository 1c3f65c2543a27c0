#!/bin/sh
# Describe and change levels of features. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau features "$@"
