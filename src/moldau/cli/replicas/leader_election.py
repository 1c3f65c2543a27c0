"""`moldau leader-election`: elect leaders of partitions, as kafka-leader-election does."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json, client_config, read_text
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.java_errors import as_java
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import message_of, reporting_as
from moldau.cli.support.tables import print_json
from moldau.client.admin import ElectionType
from moldau.client.errors import (
    ClusterAuthorizationFailedError,
    ElectionNotNeededError,
    KafkaError,
    KafkaTimeoutError,
)
from moldau.client.results import Results
from moldau.client.topics import TopicPartition

__all__ = ["add_arguments", "parse_partitions", "run"]

_FORMAT = """\
format of the file:
  {"partitions": [{"topic": "orders", "partition": 0},
                  {"topic": "orders", "partition": 1}]}

examples:
  moldau leader-election --election-type preferred --all-topic-partitions
  moldau leader-election --election-type unclean --topic orders --partition 0
"""
_API_TIMEOUT_MS = 30_000
_TYPES = [each.name.lower() for each in ElectionType]


def add_arguments(parser: Parser) -> None:
    parser.epilog = _FORMAT
    add_common(parser, deprecated=("--admin.config",))
    parser.add_argument(
        "--election-type",
        required=True,
        type=str.lower,
        choices=_TYPES,
        help="preferred: elect the first replica where another one leads; "
        "unclean: elect any replica where no in-sync replica is available",
    )
    parser.add_argument("--topic", metavar="NAME", help="topic of a single partition")
    parser.add_argument("--partition", type=int, metavar="N", help="number of the partition")
    parser.add_argument("--path-to-json-file", metavar="FILE", help="JSON file with partitions")
    parser.add_argument(
        "--all-topic-partitions", action="store_true", help="all partitions that need an election"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    election = ElectionType[arguments.election_type.upper()]
    with reporting_as(""):
        partitions = _partitions(arguments)
        config = client_config(arguments)
        limits = {
            key.replace(".", "_"): value
            for key, value in (
                ("default.api.timeout.ms", _API_TIMEOUT_MS),
                ("request.timeout.ms", _API_TIMEOUT_MS // 2),
            )
            if key not in config
        }
        with open_admin(arguments, **limits) as admin:
            try:
                results = admin.elect_leaders(election, partitions, check=False)
            except KafkaTimeoutError:
                raise Refused("Timeout waiting for election results") from None
            except ClusterAuthorizationFailedError:
                raise Refused("Not authorized to perform leader election") from None
    return _report(arguments, election, results)


def _check(arguments: argparse.Namespace) -> None:
    options = ("--topic", "--all-topic-partitions", "--path-to-json-file")
    parser = arguments.parser
    if sum(parser.is_given(arguments, option) for option in options) != 1:
        shown = ", ".join(option.lstrip("-") for option in options)
        parser.error(f"One and only one of the following options is required: {shown}")
    if arguments.topic is not None and arguments.partition is None:
        parser.error("Missing required option(s): partition")
    if arguments.topic is None and arguments.partition is not None:
        parser.error("Option partition is only allowed if topic is used")


def _partitions(arguments: argparse.Namespace) -> list[TopicPartition] | None:
    if arguments.topic is not None:
        return [TopicPartition(arguments.topic, arguments.partition)]
    if arguments.path_to_json_file is None:
        return None
    return parse_partitions(read_text(arguments.path_to_json_file))


def parse_partitions(text: str) -> list[TopicPartition]:
    """The partitions in Kafka's JSON; Refused if it is not valid."""
    try:
        document: Any = json.loads(text)
    except ValueError:
        raise Refused("Replica election data is empty") from None
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise Refused('Replica election data is missing "partitions" field')
    found = []
    for entry in document["partitions"]:
        topic = entry.get("topic") if isinstance(entry, dict) else None
        number = entry.get("partition") if isinstance(entry, dict) else None
        if not isinstance(topic, str) or not isinstance(number, int) or isinstance(number, bool):
            raise Refused(f"An entry needs a topic and a partition number: {json.dumps(entry)}")
        found.append(TopicPartition(topic, number))
    twice = [str(key) for key, count in Counter(found).items() if count > 1]
    if twice:
        raise Refused(f"Replica election data contains duplicate partitions: [{', '.join(twice)}]")
    return found


def _report(
    arguments: argparse.Namespace, election: ElectionType, results: Results[TopicPartition, None]
) -> int:
    elected = sorted(results.values_by_key)
    idle, failed = [], {}
    for key, error in sorted(results.errors.items()):
        if isinstance(error, ElectionNotNeededError):
            idle.append(key)
        else:
            failed[key] = error
    if arguments.json:
        print_json(
            {
                "electionType": election.name.lower(),
                "elected": [_json_partition(key) for key in elected],
                "alreadyElected": [_json_partition(key) for key in idle],
                "failed": [
                    {**_json_partition(key), "error": message_of(error)}
                    for key, error in failed.items()
                ],
            }
        )
    else:
        _print(election, elected, idle, failed)
    if failed:
        raise ToolError(f"{len(failed)} replica(s) could not be elected")
    return 0


def _print(
    election: ElectionType,
    elected: list[TopicPartition],
    idle: list[TopicPartition],
    failed: dict[TopicPartition, KafkaError],
) -> None:
    if elected:
        shown = ", ".join(map(str, elected))
        print(f"Successfully completed leader election ({election.name}) for partitions {shown}")
    if idle:
        shown = ", ".join(map(str, idle))
        print(f"Valid replica already elected for partitions {shown}")
    for key, error in failed.items():
        print(
            f"Error completing leader election ({election.name}) for partition: {key}: "
            f"{as_java(error)}"
        )


def _json_partition(key: TopicPartition) -> dict[str, object]:
    return {"topic": key.topic, "partition": key.partition}
