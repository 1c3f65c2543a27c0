#!/bin/sh
# Formats and inspects storage with kafka-storage's options. --help lists them.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau storage "$@"
