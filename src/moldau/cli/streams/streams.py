"""`moldau streams`: runs applications of `moldau.streams`, and shows those of a cluster."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any

from moldau.cli.streams.programs import load_topology
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import (
    add_common,
    add_json,
    client_config,
    parse_properties,
)
from moldau.cli.support.connecting import open_admin, wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.output import print_now
from moldau.cli.support.tables import Table, print_json

if TYPE_CHECKING:
    from moldau.client.admin import Admin

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
run applications of moldau.streams, and show those of a cluster

A program is a Python file that has a Topology under the name `topology`, a StreamsBuilder under
the name `builder`, or a function `build` that returns either."""

_EXAMPLES = """\
examples:
  moldau streams topology word_count.py
  moldau streams start word_count.py --application-id word-count --threads 2
  moldau streams start word_count.py --application-id word-count \\
    --queries 127.0.0.1:7070
  moldau streams query 127.0.0.1:7070 counts hello
  moldau streams list
  moldau streams describe word-count
  moldau streams stop word-count
"""
_QUERY_S = 30.0


def add_arguments(parser: Parser) -> None:
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    start = commands.add("start", "run one instance of an application until Ctrl-C")
    start.add_argument("file", metavar="FILE", help="the program")
    start.add_argument("--application-id", metavar="ID", required=True, help="the application's id")
    start.add_argument("--threads", type=int, metavar="N", help="number of threads (default: 1)")
    start.add_argument("--state-dir", metavar="DIR", help="where stores are kept on disk")
    start.add_argument(
        "--queries", metavar="HOST:PORT", help="answer queries of the stores at this address"
    )
    start.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="setting of the application; may be repeated",
    )
    add_common(start)
    stop = commands.add("stop", "stop the instances of an application on this machine")
    stop.add_argument("application_id", metavar="ID", help="the application's id")
    stop.add_argument("--state-dir", metavar="DIR", help="the --state-dir of the instances")
    topology = commands.add("topology", "print the topology of a program")
    topology.add_argument("file", metavar="FILE", help="the program")
    listing = commands.add("list", "list the applications of the cluster")
    describe = commands.add("describe", "show members, tasks and lag of an application")
    describe.add_argument("application_id", metavar="ID", help="the application's id")
    for command in (listing, describe):
        add_common(command)
        add_json(command)
    query = commands.add("query", "read a store of a running application")
    query.add_argument("address", metavar="HOST:PORT", help="the --queries address of an instance")
    query.add_argument("store", metavar="STORE", nargs="?", help="name of a store (default: list)")
    query.add_argument("key", metavar="KEY", nargs="?", help="a key (default: all entries)")
    query.add_argument("--serde", default="string", metavar="NAME", help="serde of the key")


def run(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "start":
            return _start(arguments)
        case "stop":
            return _stop(arguments)
        case "topology":
            print(load_topology(arguments.file).describe(), end="")
        case "list":
            _list(arguments)
        case "describe":
            _describe(arguments)
        case _:
            _query(arguments)
    return 0


def _start(arguments: argparse.Namespace) -> int:
    topology = load_topology(arguments.file)
    config: dict[str, Any] = dict(client_config(arguments))
    wait_until_reachable(config)
    config["application.id"] = arguments.application_id
    if arguments.threads is not None:
        config["num.stream.threads"] = arguments.threads
    if arguments.state_dir is not None:
        config["state.dir"] = arguments.state_dir
    if arguments.queries is not None:
        config["application.server"] = arguments.queries
    config.update(parse_properties("--property", arguments.property))
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.client.errors import KafkaError
    from moldau.config.errors import ConfigError
    from moldau.streams import KafkaStreams, StreamsError

    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        streams = KafkaStreams(topology, config)
        if arguments.queries is None:
            print_now(f"Running {arguments.application_id}. Ctrl-C stops it.")
            streams.run()
            return 0
        from moldau.streams.hosts.query_server import QueryServer

        with QueryServer(streams, arguments.queries) as server:
            print_now(f"Running {arguments.application_id}, queries at {server.url}/state.")
            streams.run()
    except (KafkaError, ConfigError, StreamsError) as error:
        cause = "" if error.__cause__ is None else f" ({error.__cause__})"
        raise ToolError(f"{error}{cause}") from None
    return 0


def _stop(arguments: argparse.Namespace) -> int:
    from moldau.streams.hosts.settings import state_folder
    from moldau.streams.hosts.state_directory import stop_instance

    folder = state_folder(arguments.state_dir, arguments.application_id)
    pid = stop_instance(folder)
    if pid is None:
        raise ToolError(
            f"no instance of {arguments.application_id} runs with the state directory {folder}. "
            f"Give its --state-dir."
        )
    print(f"Asked process {pid} to stop {arguments.application_id}.")
    return 0


def _applications(admin: Admin) -> list[tuple[str, str, str, int]]:
    """The id, the kind of group, the state and the number of members of each application."""
    from moldau.streams.hosts.assignor import NAME

    found = []
    groups = [each.group_id for each in admin.list_consumer_groups()]
    described = admin.describe_consumer_groups(groups, check=False) if groups else {}
    for group in groups:
        if group in getattr(described, "errors", {}):
            continue
        each = described[group]
        if each.partition_assignor in (NAME, "stream"):
            found.append((group, "consumer", str(each.group_state.value), len(each.members)))
    streams = [each.group_id for each in admin.list_streams_groups()]
    if streams:
        for group, each_streams in admin.describe_streams_groups(streams).items():
            state = str(each_streams.group_state.value)
            found.append((str(group), "streams", state, len(each_streams.members)))
    return sorted(found)


def _list(arguments: argparse.Namespace) -> None:
    with open_admin(arguments) as admin:
        rows = _applications(admin)
    if arguments.json:
        names = ("application", "group", "state", "members")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    table = Table("APPLICATION", "GROUP", "STATE", "MEMBERS")
    for row in rows:
        table.add(*row)
    table.show()


def _describe(arguments: argparse.Namespace) -> None:
    from moldau.client import OffsetSpec

    group = arguments.application_id
    with open_admin(arguments) as admin:
        described = admin.describe_consumer_groups([group])[group]
        committed = admin.list_consumer_group_offsets({group: None})[group]
        keys = [key for key, offset in committed.items() if offset is not None]
        ends = admin.list_offsets(dict.fromkeys(keys, OffsetSpec.latest())) if keys else {}
    members = {
        key: member.client_id
        for member in described.members
        for key in member.assignment.topic_partitions
    }
    rows = []
    for key in sorted({*keys, *members}):
        offset = committed.get(key)
        lag = None if offset is None else max(0, ends[key].offset - offset.offset)
        rows.append(
            {
                "topic": key.topic,
                "partition": key.partition,
                "offset": None if offset is None else offset.offset,
                "lag": lag,
                "member": members.get(key),
            }
        )
    if arguments.json:
        print_json({"application": group, "state": described.group_state.value, "inputs": rows})
        return
    print(f"{group}: {described.group_state.value}, {len(described.members)} members")
    table = Table("TOPIC", "PARTITION", "OFFSET", "LAG", "MEMBER")
    for row in rows:
        table.add(*("-" if each is None else each for each in row.values()))
    table.show()


def _query(arguments: argparse.Namespace) -> None:
    path = "/state"
    if arguments.store is not None:
        path += f"/{urllib.parse.quote(arguments.store, safe='')}"
        if arguments.key is None:
            path += "/entries"
        else:
            path += f"/keys/{urllib.parse.quote(arguments.key, safe='')}"
        path += f"?serde={urllib.parse.quote(arguments.serde)}"
    url = f"http://{arguments.address}{path}"
    try:
        with urllib.request.urlopen(url, timeout=_QUERY_S) as answer:
            print_json(json.load(answer))
    except urllib.error.HTTPError as error:
        raise ToolError(str(json.load(error).get("message", error))) from None
    except (OSError, ValueError) as error:
        raise ToolError(
            f"no application answers queries at {arguments.address}: {error}. Start it with "
            f"--queries {arguments.address}"
        ) from None
