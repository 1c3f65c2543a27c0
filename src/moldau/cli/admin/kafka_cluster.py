"""`moldau cluster cluster-id`, `unregister` and `list-endpoints`, as kafka-cluster does."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from moldau.cli.support.arguments import Parser, int32
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.tables import Table, print_json
from moldau.client.admin import Admin
from moldau.client.errors import UnsupportedVersionError

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau cluster cluster-id
  moldau cluster list-endpoints --include-fenced-brokers
  moldau cluster unregister --id 3
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.description = "show the cluster ID and endpoints, or unregister a broker"
    commands = parser.add_commands()
    cluster_id = commands.add("cluster-id", "print the cluster ID")
    unregister = commands.add("unregister", "unregister a broker that will not come back")
    endpoints = commands.add("list-endpoints", "list the endpoints of the nodes")
    for command in (cluster_id, unregister, endpoints):
        add_common(command, controllers=True, short=True, deprecated=("--config",))
        add_json(command)
    unregister.add_argument(
        "--id", "-i", type=int32, required=True, metavar="N", help="ID of the broker"
    )
    endpoints.add_argument(
        "--include-fenced-brokers", action="store_true", help="also list fenced brokers"
    )


def run(arguments: argparse.Namespace) -> int:
    with reporting_as(""), open_admin(arguments) as admin:
        match arguments.command:
            case "cluster-id":
                _cluster_id(admin, arguments)
            case "unregister":
                _unregister(admin, arguments)
            case _:
                _list_endpoints(admin, arguments)
    return 0


def _cluster_id(admin: Admin, arguments: argparse.Namespace) -> None:
    cluster_id = admin.describe_cluster().cluster_id
    if arguments.json:
        print_json({"clusterId": cluster_id})
    elif cluster_id:
        print(f"Cluster ID: {cluster_id}")
    else:
        print("No cluster ID found. The Kafka version is probably too old.")


def _unregister(admin: Admin, arguments: argparse.Namespace) -> None:
    try:
        admin.unregister_broker(arguments.id)
    except UnsupportedVersionError:
        print("The target cluster does not support the broker unregistration API.")
        return
    if arguments.json:
        print_json({"unregistered": arguments.id})
    else:
        print(f"Broker {arguments.id} is no longer registered.")


def _list_endpoints(admin: Admin, arguments: argparse.Namespace) -> None:
    of_controllers = arguments.bootstrap_controller is not None
    if of_controllers and arguments.include_fenced_brokers:
        raise Refused(
            "The option --include-fenced-brokers is only supported with --bootstrap-server option"
        )
    described = admin.describe_cluster(include_fenced_brokers=arguments.include_fenced_brokers)
    kind = "controller" if of_controllers else "broker"
    rows = [
        {
            "id": node.id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "state": "fenced" if node.is_fenced else "unfenced",
            "endpointType": kind,
        }
        for node in described.nodes
    ]
    if of_controllers:
        for row in rows:
            del row["state"]
    if arguments.json:
        print_json(rows)
        return
    state = () if of_controllers else ("STATE",)
    table = Table("ID", "HOST", "PORT", "RACK", *state, "ENDPOINT_TYPE", plain=_plain)
    for row in rows:
        table.add(*("null" if cell is None else cell for cell in row.values()))
    table.show()


def _plain(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Host and rack are as wide as their widest cell, whatever their header, as in Kafka."""
    host = max((len(row[1]) for row in rows), default=100)
    rack = max((len(row[3]) for row in rows if row[3] != "null"), default=10)
    widths = [10, host, 10, rack, *([10] if len(headers) == 6 else []), 15]
    for row in (headers, *rows):
        yield " ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
