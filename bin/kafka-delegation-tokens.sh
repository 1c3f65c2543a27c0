#!/bin/sh
# Create, renew, expire and describe tokens. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau delegation-tokens "$@"
