#!/bin/sh
# What the brokers' log directories hold. --help lists the options.
. "$(dirname "$0")/_moldau.sh"
run_moldau log-dirs "$@"
