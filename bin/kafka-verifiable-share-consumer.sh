#!/bin/sh
# The same in a share group. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau verifiable-share-consumer "$@"
