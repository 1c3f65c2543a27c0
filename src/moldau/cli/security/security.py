"""`moldau security`: its options. `security_init.py` does the work."""

from __future__ import annotations

import argparse

from moldau.cli.support.arguments import Parser

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
make certificates, users and ACLs for a cluster on this machine

`moldau security init` makes all that a cluster with TLS, logins and ACLs needs. docs/security.md
describes the settings."""

_INIT_DESCRIPTION = """\
make certificates, users and ACLs for a cluster on this machine

DIR gets a certificate authority (ca.pem, ca.key), for each node its key and certificate
(node-N.pem), its configuration (node-N.properties) and its formatted data directory
(data/node-N), and for each user the settings of a client (USER.properties), for the option
--command-config of every command. Clients connect by SASL_SSL and log in with SCRAM-SHA-512.

The user admin may do everything. Every other user may do everything with topics, groups and
transactional IDs whose names begin with the user's name and a hyphen, and nothing else:
`moldau acls` changes that. Passwords are random, and only the owner of DIR can read the files.

The nodes listen on 127.0.0.1. With another --host, clients of other machines can connect: the
nodes then listen on all interfaces. Controllers always listen on 127.0.0.1."""

_INIT_EXAMPLES = """\
examples:
  moldau security init
  moldau security init --directory /var/moldau --nodes 3 --port 19092
  moldau security init --user orders --user billing --days 90
  moldau security init --host broker.example.com --host 10.0.0.7
"""

_EXAMPLES = """\
examples:
  moldau security init
  moldau security init --directory /var/moldau --nodes 3 --user orders
"""


def add_arguments(parser: Parser) -> None:
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    init = commands.add("init", _INIT_DESCRIPTION.partition("\n")[0], epilog=_INIT_EXAMPLES)
    init.description = _INIT_DESCRIPTION
    init.add_argument(
        "--directory",
        metavar="DIR",
        default="moldau-security",
        help="directory to make; it must not exist or be empty (default: ./moldau-security)",
    )
    init.add_argument(
        "--nodes", type=int, metavar="N", default=1, help="number of nodes (default: 1)"
    )
    init.add_argument(
        "--host",
        action="append",
        metavar="HOST",
        help="name or address in the certificates beside localhost; clients use the first; "
        "may be repeated (default: 127.0.0.1)",
    )
    init.add_argument(
        "--port", type=int, metavar="P", default=9092, help="port of the first node (default: 9092)"
    )
    init.add_argument(
        "--user",
        action="append",
        metavar="USER",
        help="name of a user; may be repeated (default: client)",
    )
    init.add_argument(
        "--days",
        type=int,
        metavar="DAYS",
        default=365,
        help="how long the certificates are valid (default: 365)",
    )


def run(arguments: argparse.Namespace) -> int:
    from moldau.cli.security.security_init import run_init

    return run_init(arguments)
