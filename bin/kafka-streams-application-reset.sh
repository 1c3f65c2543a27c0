#!/bin/sh
# Let a streams application begin anew. --help lists the options.
. "$(dirname "$(readlink -f "$0")")/_moldau.sh"
run_moldau streams-application-reset "$@"
