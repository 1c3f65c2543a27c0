"""`moldau broker-api-versions`: the API versions of brokers, as kafka-broker-api-versions."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from moldau import __version__
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json, client_config
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.reporting import message_of, reporting_as
from moldau.cli.support.tables import Table, on_terminal, print_json
from moldau.client.cluster import ClusterClient
from moldau.client.config import ADMIN_KEYS, parse_settings
from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError, error_for
from moldau.client.network_settings import NetworkSettings
from moldau.client.topics import Node
from moldau.wire.apis import API_BY_KEY
from moldau.wire.messages import ApiVersionsRequest, ApiVersionsResponse

__all__ = ["add_arguments", "run"]

Ranges = Mapping[int, tuple[int, int]]

_EXAMPLES = """\
examples:
  moldau broker-api-versions
  moldau broker-api-versions --bootstrap-server kafka1:9092 --json
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with reporting_as(""):
        config = client_config(arguments)
        wait_until_reachable(config)
        found = asyncio.run(_ask(parse_settings(ADMIN_KEYS, config)))
    if arguments.json:
        print_json([_to_json(node, answer) for node, answer in found])
    elif on_terminal():
        _show_tables(found)
    else:
        for node, answer in found:
            print(f"{_node_text(node)} -> {_plain(answer)}")
    return 0


async def _ask(values: dict[str, Any]) -> list[tuple[Node, Ranges | KafkaError]]:
    cluster = ClusterClient(NetworkSettings.of(values))
    try:
        deadline = Deadline(cluster.clock, values["default.api.timeout.ms"])
        picture = await cluster.refresh(deadline=deadline)
        nodes = [picture.nodes[node_id] for node_id in sorted(picture.nodes)]
        answers = await asyncio.gather(*(_versions(cluster, node) for node in nodes))
        return list(zip(nodes, answers, strict=True))
    finally:
        await cluster.close()


async def _versions(cluster: ClusterClient, node: Node) -> Ranges | KafkaError:
    request = ApiVersionsRequest(client_software_name="moldau", client_software_version=__version__)
    try:
        response: ApiVersionsResponse = await cluster.call(node, request)
    except KafkaError as error:
        return error
    if response.error_code:
        return error_for(response.error_code)
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


def _node_text(node: Node) -> str:
    fenced = "true" if node.is_fenced else "false"
    return f"{node.host}:{node.port} (id: {node.id} rack: {node.rack or 'null'} isFenced: {fenced})"


def _keys(ranges: Ranges) -> Iterable[int]:
    """APIs that the broker serves, and those that clients know and it does not serve."""
    wanted = {key for key, api in API_BY_KEY.items() if "broker" in api.listeners}
    return sorted(wanted | set(ranges))


def _name(key: int) -> str:
    return API_BY_KEY[key].name if key in API_BY_KEY else "UNKNOWN"


def _served(ranges: Ranges, key: int) -> str:
    if key not in ranges:
        return "UNSUPPORTED"
    low, high = ranges[key]
    return str(low) if low == high else f"{low} to {high}"


def _usable(ranges: Ranges, key: int) -> str:
    if key not in ranges or key not in API_BY_KEY:
        return ""
    low, high = ranges[key]
    own = API_BY_KEY[key]
    if own.max_version_unstable < low:
        return "unusable: node too new"
    if high < own.min_version:
        return "unusable: node too old"
    return f"usable: {min(own.max_version_unstable, high)}"


def _plain(answer: Ranges | KafkaError) -> str:
    if isinstance(answer, KafkaError):
        return f"ERROR: {message_of(answer)}"
    lines = []
    for key in _keys(answer):
        usable = _usable(answer, key)
        lines.append(
            f"{_name(key)}({key}): {_served(answer, key)}" + (f" [{usable}]" if usable else "")
        )
    return "(\n\t" + ",\n\t".join(lines) + "\n)"


def _show_tables(found: Iterable[tuple[Node, Ranges | KafkaError]]) -> None:
    for node, answer in found:
        if isinstance(answer, KafkaError):
            print(f"{_node_text(node)}: {message_of(answer)}")
            continue
        table = Table("Key", "Request", "Versions", "Here", title=_node_text(node))
        for key in _keys(answer):
            usable = _usable(answer, key)
            bad = key not in answer or usable.startswith("unusable")
            table.add(key, _name(key), _served(answer, key), usable, style="red" if bad else None)
        table.show()


def _to_json(node: Node, answer: Ranges | KafkaError) -> dict[str, object]:
    shown: dict[str, object] = {
        "id": node.id,
        "host": node.host,
        "port": node.port,
        "rack": node.rack,
    }
    if isinstance(answer, KafkaError):
        shown["error"] = message_of(answer)
    else:
        shown["apis"] = [
            {"key": key, "name": _name(key), "min": low, "max": high}
            for key, (low, high) in sorted(answer.items())
        ]
    return shown
