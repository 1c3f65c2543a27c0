#!/bin/sh
# Send lines of standard input to a topic. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau console-producer "$@"
