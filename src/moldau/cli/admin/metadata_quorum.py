"""`moldau metadata-quorum`: show and change the quorum, as kafka-metadata-quorum does."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import UUID

from moldau.broker.config.listeners import Listener, listener_name, parse_listeners
from moldau.cli.support.arguments import Parser, int32
from moldau.cli.support.client_options import add_common, add_json, client_config
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.connecting import open_admin, wait_until_reachable
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.tables import Table, print_json
from moldau.client.admin import Admin, QuorumInfo, RaftVoterEndpoint, ReplicaState
from moldau.client.config import ADMIN_KEYS
from moldau.config.errors import ConfigError
from moldau.config.properties import load_properties
from moldau.wire.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

__all__ = ["add_arguments", "run"]

_IS_IT_ONE = "Is this a valid controller configuration file?"

_EXAMPLES = """\
examples:
  moldau metadata-quorum describe --status
  moldau metadata-quorum describe --replication --human-readable
  moldau metadata-quorum --command-config controller.properties add-controller
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser, controllers=True)
    commands = parser.add_commands()
    describe = commands.add("describe", "show the state of the quorum")
    describe.add_argument("--status", action="store_true", help="show a summary")
    describe.add_argument(
        "--replication", action="store_true", help="show how far each node has replicated the log"
    )
    describe.add_argument(
        "--human-readable", action="store_true", help="show times as durations (with --replication)"
    )
    add_json(describe)
    add = commands.add(
        "add-controller", "add a controller; --command-config is its configuration file"
    )
    remove = commands.add("remove-controller", "remove a controller from the quorum")
    remove.add_argument(
        "--controller-id", "-i", type=int32, required=True, metavar="N", help="ID of the controller"
    )
    remove.add_argument(
        "--controller-directory-id",
        "-d",
        required=True,
        metavar="ID",
        help="ID of its metadata directory",
    )
    for command in (add, remove):
        command.add_argument("--dry-run", action="store_true", help="only print what would be done")


def run(arguments: argparse.Namespace) -> int:
    with reporting_as(""):
        match arguments.command:
            case "describe":
                _describe(arguments)
            case "add-controller":
                _add_controller(arguments)
            case _:
                _remove_controller(arguments)
    return 0


# Describe.


def _describe(arguments: argparse.Namespace) -> None:
    if arguments.status and arguments.replication:
        raise Refused(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if not arguments.status and not arguments.replication:
        raise Refused(
            "One of --status or --replication must be specified with describe sub-command"
        )
    if arguments.status and arguments.human_readable:
        raise Refused("The option --human-readable is only supported along with --replication")
    with open_admin(arguments) as admin:
        quorum = admin.describe_metadata_quorum()
        if arguments.status:
            _show_status(admin.describe_cluster().cluster_id, quorum, as_json=arguments.json)
        else:
            _show_replication(quorum, arguments)


def _leader(quorum: QuorumInfo) -> ReplicaState:
    for voter in quorum.voters:
        if voter.replica_id == quorum.leader_id:
            return voter
    raise Refused("the quorum has no leader at the moment. Try again soon")


def _show_replication(quorum: QuorumInfo, arguments: argparse.Namespace) -> None:
    leader = _leader(quorum)
    followers = [each for each in quorum.voters if each is not leader]
    rows = [
        *((each, "Leader") for each in (leader,)),
        *((each, "Follower") for each in followers),
        *((each, "Observer") for each in quorum.observers),
    ]
    now_ms = int(time.time() * 1000)
    table = Table(
        "NodeId",
        "DirectoryId",
        "LogEndOffset",
        "Lag",
        "LastFetchTimestamp",
        "LastCaughtUpTimestamp",
        "Status",
    )
    shown = []
    for replica, status in rows:
        times = {
            "last fetch": replica.last_fetch_timestamp,
            "last caught up": replica.last_caught_up_timestamp,
        }
        texts = [
            _time_text(moment, what, now_ms if arguments.human_readable else None)
            for what, moment in times.items()
        ]
        cells = (
            replica.replica_id,
            uuid_to_text(replica.replica_directory_id),
            replica.log_end_offset,
            leader.log_end_offset - replica.log_end_offset,
        )
        table.add(*cells, *texts, status)
        keys = ("nodeId", "directoryId", "logEndOffset", "lag")
        shown.append(
            {
                **dict(zip(keys, cells, strict=True)),
                "lastFetchTimestamp": replica.last_fetch_timestamp,
                "lastCaughtUpTimestamp": replica.last_caught_up_timestamp,
                "status": status,
            }
        )
    if arguments.json:
        print_json(shown)
    else:
        table.show()


def _time_text(moment_ms: int | None, what: str, now_ms: int | None) -> str:
    if moment_ms is None:
        return "-1"
    if now_ms is None:
        return str(moment_ms)
    if not 0 < moment_ms <= now_ms:
        raise Refused(
            "Error while computing relative time, possible drift in system clock. "
            f"Current timestamp is {now_ms}, {what} timestamp is {moment_ms}"
        )
    return f"{now_ms - moment_ms} ms ago"


def _show_status(cluster_id: str, quorum: QuorumInfo, *, as_json: bool) -> None:
    leader = _leader(quorum)
    slowest = min(quorum.voters, key=lambda each: each.log_end_offset)
    lag_time_ms = -1
    if slowest is leader:
        lag_time_ms = 0
    elif leader.last_caught_up_timestamp is not None and slowest.last_caught_up_timestamp:
        lag_time_ms = leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp
    facts: dict[str, object] = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_time_ms,
        "CurrentVoters": [_replica(quorum, each) for each in quorum.voters],
        "CurrentObservers": [_replica(quorum, each) for each in quorum.observers],
    }
    if as_json:
        print_json({key[0].lower() + key[1:]: value for key, value in facts.items()})
        return
    for key, value in facts.items():
        # These lists are JSON with a blank after every comma and colon.
        text = json.dumps(value) if isinstance(value, list) else value
        print(f"{key + ':':<23} {text}")


def _replica(quorum: QuorumInfo, replica: ReplicaState) -> dict[str, object]:
    shown: dict[str, object] = {"id": replica.replica_id}
    if replica.replica_directory_id != ZERO_UUID:
        shown["directoryId"] = uuid_to_text(replica.replica_directory_id)
    node = quorum.nodes.get(replica.replica_id)
    if node is not None and node.endpoints:
        shown["endpoints"] = [_endpoint_text(each) for each in node.endpoints]
    return shown


def _endpoint_text(endpoint: RaftVoterEndpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


# Change.


def _add_controller(arguments: argparse.Namespace) -> None:
    if arguments.command_config is None:
        raise Refused(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    properties = read_config_file(arguments.command_config)
    controller_id = _controller_id(properties)
    directory_id = _directory_id(_metadata_directory(properties))
    endpoints = _endpoints(properties)
    if not arguments.dry_run:
        # The file is the controller's: the client uses only the keys that it knows.
        config = {
            key: value for key, value in client_config(arguments).items() if key in ADMIN_KEYS
        }
        wait_until_reachable(config)
        with Admin(config) as admin:
            admin.add_raft_voter(controller_id, directory_id, endpoints)
    done = "DRY RUN of adding" if arguments.dry_run else "Added"
    print(
        f"{done} controller {controller_id} with directory id {uuid_to_text(directory_id)} "
        f"and endpoints: {', '.join(map(_endpoint_text, endpoints))}"
    )


def _controller_id(properties: Mapping[str, str]) -> int:
    text = properties.get("node.id")
    if text is None:
        raise Refused(f"node.id not found in configuration file. {_IS_IT_ONE}")
    try:
        node_id = int(text)
    except ValueError:
        raise Refused(f"node.id is {text!r} in configuration file. {_IS_IT_ONE}") from None
    if node_id < 0:
        raise Refused(f"node.id was negative in configuration file. {_IS_IT_ONE}")
    if "controller" not in properties.get("process.roles", ""):
        raise Refused(
            f"process.roles did not contain 'controller' in configuration file. {_IS_IT_ONE}"
        )
    return node_id


def _metadata_directory(properties: Mapping[str, str]) -> str:
    for key in ("metadata.log.dir", "log.dirs", "log.dir"):
        if properties.get(key):
            return properties[key].split(",")[0].strip()
    raise Refused(f"Neither metadata.log.dir nor log.dirs were found. {_IS_IT_ONE}")


def _directory_id(directory: str) -> UUID:
    try:
        text = (Path(directory) / "meta.properties").read_text(encoding="utf-8")
        found = load_properties(text).get("directory.id")
    except (OSError, ConfigError, UnicodeDecodeError):
        raise Refused(f"Unable to read meta.properties from {directory}") from None
    if found is None:
        raise Refused(f"No directory id found in {directory}")
    try:
        return uuid_from_text(found)
    except ValueError as error:
        raise Refused(f"directory.id in {directory}/meta.properties is wrong: {error}") from None


def _endpoints(properties: Mapping[str, str]) -> list[RaftVoterEndpoint]:
    """Where the controller listens, by the names of its controller listeners."""
    listeners: dict[str, Listener] = {}
    for key in ("listeners", "advertised.listeners"):
        if properties.get(key):
            listeners.update({each.name.upper(): each for each in _parse(key, properties[key])})
    names = properties.get("controller.listener.names")
    if not names:
        raise Refused(f"controller.listener.names was not found. {_IS_IT_ONE}")
    found = []
    for name in (part.strip().upper() for part in names.split(",")):
        listener = listeners.get(name)
        if listener is None:
            raise Refused(f"Cannot find information about controller listener name: {name}")
        found.append(RaftVoterEndpoint(name, listener.host or "localhost", listener.port))
    return found


def _parse(key: str, text: str) -> Iterable[Listener]:
    entries = tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        # The security protocol of a listener does not matter here.
        names = {listener_name(key, entry): "PLAINTEXT" for entry in entries}
        return parse_listeners(key, entries, names, distinct_ports=False)
    except ConfigError as error:
        raise Refused(str(error)) from None


def _remove_controller(arguments: argparse.Namespace) -> None:
    if arguments.controller_id < 0:
        raise Refused(f"Invalid negative --controller-id: {arguments.controller_id}")
    try:
        directory_id = uuid_from_text(arguments.controller_directory_id)
    except ValueError as error:
        raise Refused(f"Failed to parse --controller-directory-id: {error}") from None
    if not arguments.dry_run:
        with open_admin(arguments) as admin:
            admin.remove_raft_voter(arguments.controller_id, directory_id)
    # Two blanks, as Kafka prints it.
    done = "DRY RUN of removing " if arguments.dry_run else "Removed "
    print(
        f"{done} KRaft controller {arguments.controller_id} with directory id "
        f"{uuid_to_text(directory_id)}"
    )
