#!/bin/sh
# Produce numbers and report every one. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau verifiable-producer "$@"
