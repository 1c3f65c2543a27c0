#!/bin/sh
# Reset a Kafka Streams application. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau streams-application-reset "$@"
