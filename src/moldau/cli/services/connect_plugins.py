"""The commands that need no worker: plug-ins and their settings, and what transforms do."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from moldau.cli.services.connect_files import connector_file
from moldau.cli.support.addresses import DEFAULT_SERVERS, cluster_settings
from moldau.cli.support.failures import Failure
from moldau.cli.support.tables import Table, aligned, print_json
from moldau.config import ConfigError
from moldau.connect.api import ConnectError, ConnectRecord, DataError, SinkConnector, SinkRecord
from moldau.connect.chain import Chain, Link, chain_of
from moldau.connect.plugins import CONNECTOR_KINDS, Plugins
from moldau.connect.runtime.clients import worker_client
from moldau.connect.runtime.conversion import SinkConversion, converters_of
from moldau.connect.runtime.failures import StepFailed
from moldau.connect.validation import key_info
from moldau.data.connect_json import JsonConverter, JsonOptions
from moldau.data.struct import as_plain

__all__ = ["run"]

_JSON = JsonConverter(JsonOptions(schemas_enable=False))
_WAIT_S = 10.0
_CELL_MAX = 100


def run(arguments: argparse.Namespace) -> int:
    try:
        if arguments.command == "dry-run":
            return _dry_run(arguments)
        return _plugins(arguments)
    except (ConfigError, ConnectError) as error:
        raise Failure(str(error)) from None


def _plugins(arguments: argparse.Namespace) -> int:
    plugins = Plugins(paths=[each for each in arguments.plugin_path.split(",") if each])
    if arguments.plugin is not None:
        return _settings(plugins, arguments)
    found = [each for each in plugins.list() if arguments.all or each.kind in CONNECTOR_KINDS]
    if arguments.json:
        print_json([{"class": e.class_name, "type": e.kind.value, "version": e.version}
                    for e in found])  # fmt: skip
        return 0
    table = Table("TYPE", "NAME", "VERSION", "CLASS", plain=aligned)
    for each in found:
        table.add(each.kind.value, each.name, each.version, each.class_name)
    table.show()
    return 0


def _settings(plugins: Plugins, arguments: argparse.Namespace) -> int:
    kind = plugins.kind_of(arguments.plugin)
    if kind is None:
        raise Failure(f"there is no plug-in {arguments.plugin}: see moldau connect plugins --all")
    definition = plugins.find(arguments.plugin, [kind], arguments.version).config()
    if arguments.json:
        print_json([key_info(each) for each in definition.values()])
        return 0
    table = Table("SETTING", "TYPE", "DEFAULT", "IMPORTANCE", "MEANING", plain=aligned)
    for key in definition.values():
        default = "required" if key.required else key.render(key.default) or ""
        table.add(key.name, key.type.name.lower(), default, key.importance.name.lower(), key.doc)
    table.show()
    return 0


def _dry_run(arguments: argparse.Namespace) -> int:
    config = connector_file(arguments.file)
    plugins = Plugins()
    made = plugins.connector(config.get("connector.class", ""))()
    chain = chain_of(config, plugins)
    if arguments.input is not None:
        records = _from_lines(arguments.input, config)
    elif isinstance(made, SinkConnector):
        records = _from_topics(arguments, config, plugins)
    else:
        records = _from_source(config)
    steps = ["input", *(link.alias for link in chain.links)]
    table = Table("RECORD", "STEP", "TOPIC", "KEY", "VALUE", "HEADERS", plain=aligned)
    count = 0
    for number, record in enumerate(records, start=1):
        if number > arguments.sample:
            break
        count = number
        for step, state in zip(steps, _states(chain, record), strict=False):
            _add_row(table, number, step, state)
    if not count:
        raise Failure("there are no records to try: give --input with JSON lines")
    table.show()
    return 0


def _states(chain: Chain, record: Any) -> Iterator[Any]:
    """The record before the first step and after each; None once it is dropped."""
    yield record
    for link in chain.links:
        record = _applied(link, record)
        yield record
        if not isinstance(record, ConnectRecord):
            return


def _applied(link: Link, record: Any) -> Any:
    try:
        return link.apply(record)
    except (DataError, ConnectError) as error:
        return error


def _add_row(table: Table, number: int, step: str, state: Any) -> None:
    if state is None:
        table.add(number, step, "", "", "(dropped)", "", style="yellow")
    elif isinstance(state, Exception):
        table.add(number, step, "", "", f"(fails: {state})", "", style="red")
    else:
        headers = ", ".join(f"{each.key}={_shown(each.value)}" for each in state.headers)
        table.add(number, step, state.topic, _shown(state.key), _shown(state.value), headers)


def _shown(value: Any) -> str:
    if value is None or isinstance(value, str):
        text = "" if value is None else value
    else:
        try:
            text = (_JSON.to_json(None, as_plain(value)) or b"").decode()
        except DataError:
            text = str(value)
    return text if len(text) <= _CELL_MAX else text[: _CELL_MAX - 3] + "..."


def _from_lines(path: str, config: Mapping[str, str]) -> Iterator[Any]:
    topic = config.get("topic") or config.get("topics", "topic").split(",")[0].strip()
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    for offset, line in enumerate(lines):
        try:
            value = json.loads(line)
        except ValueError:
            value = line
        yield SinkRecord(topic, 0, offset, value=value, timestamp=int(time.time() * 1000))


def _from_source(config: Mapping[str, str]) -> Iterator[Any]:
    from moldau.testing.connect import SourceDriver

    without = {k: v for k, v in config.items() if not k.startswith(("transforms", "predicates"))}
    with SourceDriver(config["connector.class"], without) as source:
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline:
            yield from source.poll()


def _from_topics(
    arguments: argparse.Namespace, config: Mapping[str, str], plugins: Plugins
) -> Iterator[Any]:
    from moldau.client import Consumer, TopicPartition

    settings = cluster_settings(os.environ) or {"bootstrap.servers": DEFAULT_SERVERS}
    if arguments.bootstrap_server is not None:
        settings = {"bootstrap.servers": arguments.bootstrap_server}
    defaults = {
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    conversion = SinkConversion(Chain([]), converters_of(defaults, config, plugins))
    topics = [each.strip() for each in config.get("topics", "").split(",") if each.strip()]
    client = worker_client(settings, "consumer")
    with Consumer({**client, "auto.offset.reset": "earliest"}) as consumer:
        partitions = [
            TopicPartition(topic, each.partition)
            for topic in topics
            for each in consumer.partitions_for(topic)
        ]
        if not partitions:
            raise Failure("the connector has no topics to read: set topics, or give --input")
        consumer.assign(partitions)
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline:
            for record in consumer.poll(1.0):
                try:
                    made = conversion.convert(record)
                except StepFailed as failed:
                    raise Failure(
                        f"{record.topic}-{record.partition} offset {record.offset}: "
                        f"{failed.stage.value} failed: {failed.error}"
                    ) from None
                if made is not None:
                    yield made
