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

from moldau.cli.streams.hosted import (
    add_deployment,
    add_instances,
    hosted_applications,
    instances_of,
    scale_hosted,
    show_instances,
    start_hosted,
    stop_hosted,
)
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
    from moldau.pipelines.api import PipelineInfo

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
  moldau streams start word_count.py --application-id word-count --instances 4
  moldau streams scale word-count 8
  moldau streams list
  moldau streams describe word-count
  moldau streams stop word-count
"""
_QUERY_S = 30.0


def add_arguments(parser: Parser) -> None:
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    start = commands.add("start", "run an application: here until Ctrl-C, or on Spark")
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
    add_instances(start)
    scale = commands.add("scale", "change the number of instances of an application on Spark")
    scale.add_argument("application_id", metavar="ID", help="the application's id")
    scale.add_argument("instances", type=int, metavar="N", help="how many instances to run")
    stop = commands.add("stop", "stop an application on Spark, or its instance on this machine")
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
        add_deployment(command)
    for command in (scale, stop):
        add_common(command, required=False)
        add_deployment(command)
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
        case "scale":
            scale_hosted(arguments)
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
    config |= _own_settings(arguments)
    # Imported late: a wrong option should be reported before anything is loaded.
    from moldau.client.errors import KafkaError
    from moldau.config.errors import ConfigError
    from moldau.streams import KafkaStreams, StreamsError

    if arguments.instances is not None:
        try:
            KafkaStreams(topology, config)
        except (ConfigError, StreamsError) as error:
            raise ToolError(str(error)) from None
        start_hosted(arguments, _own_settings(arguments))
        return 0
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


def _own_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of the application that are not those of its clients."""
    config: dict[str, Any] = {}
    config["application.id"] = arguments.application_id
    if arguments.threads is not None:
        config["num.stream.threads"] = arguments.threads
    if arguments.state_dir is not None:
        config["state.dir"] = arguments.state_dir
    if arguments.queries is not None:
        config["application.server"] = arguments.queries
    config.update(parse_properties("--property", arguments.property))
    return config


def _stop(arguments: argparse.Namespace) -> int:
    from moldau.streams.hosts.settings import state_folder
    from moldau.streams.hosts.state_directory import stop_instance

    if arguments.state_dir is None and stop_hosted(arguments):
        return 0
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
    hosted = hosted_applications(arguments)
    with open_admin(arguments) as admin:
        found = _applications(admin)
    groups = {row[0] for row in found}
    # An application on Spark that has not joined its group yet, or was stopped.
    found += [(name, "-", "-", 0) for name in hosted if name not in groups]
    rows: list[tuple[Any, ...]] = [(*row, _on_spark(hosted.get(row[0]))) for row in sorted(found)]
    if arguments.json:
        names = ("application", "group", "state", "members", "spark")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    table = Table("APPLICATION", "GROUP", "STATE", "MEMBERS", "ON SPARK")
    for row in rows:
        table.add(*(("-" if each is None else each) for each in row))
    table.show()


def _on_spark(info: PipelineInfo | None) -> str | None:
    """The state of an application on Spark, and how many of its instances run."""
    if info is None:
        return None
    return f"{info.state}, {info.instances_running or 0} of {info.instances}"


def _describe(arguments: argparse.Namespace) -> None:
    from moldau.client import OffsetSpec

    group = arguments.application_id
    hosted = hosted_applications(arguments).get(group)
    with open_admin(arguments) as admin:
        state, members = _members(admin, group)
        committed = admin.list_consumer_group_offsets({group: None})[group]
        keys = [key for key, offset in committed.items() if offset is not None]
        ends = admin.list_offsets(dict.fromkeys(keys, OffsetSpec.latest())) if keys else {}
    rows = []
    for key in sorted(keys):
        offset = committed[key]
        lag = 0 if offset is None else max(0, ends[key].offset - offset.offset)
        rows.append(
            {
                "topic": key.topic,
                "partition": key.partition,
                "offset": None if offset is None else offset.offset,
                "lag": lag,
            }
        )
    if arguments.json:
        listed = [{"member": name, "tasks": tasks} for name, tasks in members]
        shown = {"application": group, "state": state, "members": listed, "inputs": rows}
        if hosted is not None:
            shown |= {"spark": hosted.state, "instances": instances_of(hosted)}
        print_json(shown)
        return
    print(f"{group}: {state}")
    if hosted is not None:
        show_instances(hosted)
    table = Table("MEMBER", "TASKS")
    for name, tasks in members:
        table.add(name, ", ".join(tasks) or "-")
    table.show()
    table = Table("TOPIC", "PARTITION", "OFFSET", "LAG")
    for row in rows:
        table.add(*row.values())
    table.show()


def _members(admin: Admin, group: str) -> tuple[str, list[tuple[str, list[str]]]]:
    """The state of an application's group, and what each member runs."""
    if group in {each.group_id for each in admin.list_streams_groups()}:
        streams = admin.describe_streams_groups([group])[group]
        return str(streams.group_state.value), sorted(
            (
                member.client_id,
                sorted(
                    f"{task.subtopology_id}_{partition}"
                    for task in member.assignment.active_tasks
                    for partition in task.partitions
                ),
            )
            for member in streams.members
        )
    described = admin.describe_consumer_groups([group])[group]
    return str(described.group_state.value), sorted(
        (each.client_id, sorted(map(str, each.assignment.topic_partitions)))
        for each in described.members
    )


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
