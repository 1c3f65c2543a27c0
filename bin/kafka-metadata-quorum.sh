#!/bin/sh
# Describe and change the controllers' quorum. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau metadata-quorum "$@"
