"""`moldau log-dirs`: show the contents of the brokers' log directories."""

from __future__ import annotations

import argparse
import json
from typing import Any

from moldau.cli.support.arguments import Parser, int32
from moldau.cli.support.client_options import add_common, add_json, client_config
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.tables import Table, on_terminal, print_json
from moldau.client.admin import Admin, LogDirDescription
from moldau.wire.errors import ErrorCode

__all__ = ["add_arguments", "run"]

# The classes that Kafka's tool names; a directory has no other errors.
_JAVA_ERRORS = {
    ErrorCode.KAFKA_STORAGE_ERROR: "org.apache.kafka.common.errors.KafkaStorageException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "org.apache.kafka.common.errors.ClusterAuthorizationException"
    ),
}

_EXAMPLES = """\
examples:
  moldau log-dirs --describe
  moldau log-dirs --describe --topic-list orders --broker-list 1,2
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser)
    parser.add_argument(
        "--describe", action="store_true", required=True, help="show the contents (required)"
    )
    parser.add_argument("--topic-list", default="", metavar="T,...", help="topics (default: all)")
    parser.add_argument("--broker-list", default="", metavar="N,...", help="brokers (default: all)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    topics = frozenset(part for part in arguments.topic_list.split(",") if part)
    brokers = _broker_ids(arguments)
    settings = {} if "client.id" in client_config(arguments) else {"client_id": "log-dirs-tool"}
    with reporting_as(""), open_admin(arguments, **settings) as admin:
        _describe(admin, topics, brokers, as_json=arguments.json)
    return 0


def _broker_ids(arguments: argparse.Namespace) -> set[int]:
    try:
        return {int32(part) for part in arguments.broker_list.split(",") if part}
    except argparse.ArgumentTypeError:
        raise ToolError(
            f"--broker-list {arguments.broker_list}: broker ids are numbers, e.g. 1,2,3"
        ) from None


def _describe(admin: Admin, topics: frozenset[str], brokers: set[int], *, as_json: bool) -> None:
    known = sorted(node.id for node in admin.describe_cluster().nodes)
    missing = sorted(brokers.difference(known))
    if missing:
        raise Refused(
            "ERROR: The given brokers do not exist from --broker-list: "
            f"{_joined(missing)}. Current existent brokers: {_joined(known)}"
        )
    wanted = sorted(brokers) or known
    quiet = as_json or on_terminal()
    if not quiet:
        print("Querying brokers for log directories information")
    found = admin.describe_log_dirs(wanted)
    document = {
        "brokers": [
            {
                "broker": broker,
                "logDirs": [
                    _log_dir(path, found[broker][path], topics) for path in sorted(found[broker])
                ],
            }
            for broker in wanted
        ],
        "version": 1,
    }
    if as_json:
        print_json(document)
    elif quiet:
        _show(document)
    else:
        print(f"Received log directory information from brokers {_joined(wanted)}")
        print(json.dumps(document, separators=(",", ":")))


def _log_dir(path: str, found: LogDirDescription, topics: frozenset[str]) -> dict[str, object]:
    error = found.error
    error_name = None
    if error is not None:
        code = error.code
        error_name = _JAVA_ERRORS.get(code) if code is not None else None
        error_name = error_name or type(error).__name__
    return {
        "partitions": [
            {
                "partition": str(key),
                "offsetLag": replica.offset_lag,
                "size": replica.size,
                "isFuture": replica.is_future,
            }
            for key, replica in sorted(found.replica_infos.items())
            if not topics or key.topic in topics
        ],
        "error": error_name,
        "logDir": path,
    }


def _show(document: dict[str, Any]) -> None:
    for broker in document["brokers"]:
        for folder in broker["logDirs"]:
            title = f"broker {broker['broker']}   {folder['logDir']}"
            if folder["error"]:
                title += f"   {folder['error']}"
            table = Table("Partition", "Size", "OffsetLag", "Future", title=title)
            for each in folder["partitions"]:
                future = "yes" if each["isFuture"] else ""
                table.add(each["partition"], each["size"], each["offsetLag"], future)
            table.show()


def _joined(ids: list[int]) -> str:
    return ",".join(map(str, ids))
