#!/bin/sh
# Describe and change levels of features. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau features "$@"
