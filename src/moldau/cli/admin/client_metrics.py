"""`moldau client-metrics`: show and change subscriptions to client metrics."""

from __future__ import annotations

import argparse
import os

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.tables import print_json
from moldau.client.admin import Admin, AlterConfigOp, ConfigResource
from moldau.wire.uuids import random_uuid, uuid_to_text

__all__ = ["add_arguments", "run"]

_ACTIONS = ("--alter", "--delete", "--describe", "--list")
_CHANGES = ("--generate-name", "--interval", "--match", "--metrics")

_EXAMPLES = """\
examples:
  moldau client-metrics --list
  moldau client-metrics --alter --name slow --interval 10000 \\
    --metrics org.apache.kafka.producer.
  moldau client-metrics --delete --name slow
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser, required=False)
    parser.add_actions(
        {
            "--alter": "create or change a subscription",
            "--delete": "delete a subscription",
            "--describe": "show subscriptions",
            "--list": "list the names of subscriptions",
        }
    )
    parser.add_argument("--name", metavar="NAME", help="name of the subscription")
    parser.add_argument("--generate-name", action="store_true", help="generate a name (alter)")
    parser.add_argument(
        "--interval",
        metavar="MS",
        help="how often clients push metrics; empty for the default (alter)",
    )
    parser.add_argument(
        "--match",
        action="append",
        metavar="KEY=REGEX,...",
        help="clients, by client_id, client_instance_id, client_software_name, "
        "client_software_version, client_source_address, client_source_port; empty for all (alter)",
    )
    parser.add_argument(
        "--metrics",
        action="append",
        metavar="PREFIX,...",
        help="prefixes of the names of metrics; empty for none (alter)",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    with (
        reporting_as("Error while executing client metrics command : ", to_stdout=True),
        open_admin(arguments) as admin,
    ):
        if arguments.alter:
            _alter(admin, arguments)
        elif arguments.delete:
            _delete(admin, arguments)
        elif arguments.describe:
            _describe(admin, arguments)
        else:
            names = admin.list_client_metrics_resources()
            if arguments.json:
                print_json(names)
            else:
                print("\n".join(names))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    parser: Parser = arguments.parser
    if sum(parser.is_given(arguments, option) for option in _ACTIONS) != 1:
        parser.error(
            "Command must include exactly one action: --alter, --delete, --describe or --list."
        )
    if arguments.bootstrap_server is None:
        raise ToolError("--bootstrap-server must be specified.")
    parser.refuse(arguments, "--delete", _CHANGES)
    parser.refuse(arguments, "--describe", _CHANGES)
    parser.refuse(arguments, "--list", ["--name", *_CHANGES])
    if arguments.alter and (arguments.name is not None) == arguments.generate_name:
        raise ToolError("One of --name or --generate-name must be specified with --alter.")
    if arguments.interval and not arguments.interval.lstrip("-").isdigit():
        raise ToolError("Invalid interval value. Enter an integer, or leave empty to reset.")
    if arguments.delete and arguments.name is None:
        raise ToolError("A client metrics resource name must be specified with --delete.")


def _alter(admin: Admin, arguments: argparse.Namespace) -> None:
    name = arguments.name
    if arguments.generate_name:
        name = uuid_to_text(random_uuid(os.urandom(16)))
    values = {
        "interval.ms": arguments.interval,
        "metrics": None if arguments.metrics is None else ",".join(arguments.metrics),
        "match": None if arguments.match is None else ",".join(arguments.match),
    }
    operations = [
        AlterConfigOp.set(key, value) if value else AlterConfigOp.delete(key)
        for key, value in values.items()
        if value is not None
    ]
    admin.incremental_alter_configs({ConfigResource.client_metrics(name): operations}, timeout=30)
    if arguments.json:
        print_json({"altered": name})
    else:
        print(f"Altered client metrics config for {name}.")


def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    resource = ConfigResource.client_metrics(arguments.name)
    operations = [AlterConfigOp.delete(key) for key in admin.describe_configs([resource])[resource]]
    admin.incremental_alter_configs({resource: operations}, timeout=30)
    if arguments.json:
        print_json({"deleted": arguments.name})
    else:
        print(f"Deleted client metrics config for {arguments.name}.")


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    names = admin.list_client_metrics_resources()
    if arguments.name is not None:
        if arguments.name not in names:
            print(
                f"The client metric resource {arguments.name} doesn't exist and doesn't have "
                "dynamic config."
            )
            return
        names = [arguments.name]
    resources = [ConfigResource.client_metrics(name) for name in names]
    found = admin.describe_configs(resources) if resources else {}
    if arguments.json:
        print_json(
            {
                resource.name: {key: entry.value for key, entry in found[resource].items()}
                for resource in resources
            }
        )
        return
    for resource in resources:
        print(f"Client metrics configs for {resource.name} are:")
        for key, entry in found[resource].items():
            print(f"  {key}={'null' if entry.value is None else entry.value}")
