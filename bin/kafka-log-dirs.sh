#!/bin/sh
# What the brokers' log directories hold. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau log-dirs "$@"
