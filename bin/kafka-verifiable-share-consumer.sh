#!/bin/sh
# The same in a share group. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau verifiable-share-consumer "$@"
