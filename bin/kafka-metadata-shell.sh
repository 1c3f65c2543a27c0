#!/bin/sh
# Walk through a snapshot of the cluster's metadata. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau metadata-shell "$@"
