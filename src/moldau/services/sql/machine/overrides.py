"""What a request may set for its statements: properties by name, with values of their types.

A request cannot take its queries to other brokers, nor switch off what the server has switched on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from moldau.client.config.consumer_keys import CONSUMER_KEYS
from moldau.client.config.producer_keys import PRODUCER_KEYS
from moldau.config.definition import ConfigDef
from moldau.config.errors import ConfigError
from moldau.config.values import ConfigType
from moldau.services.sql.config import SQL_KEYS
from moldau.sql.errors import KsqlException
from moldau.streams.hosts.settings_keys import STREAMS_KEYS

__all__ = ["check_overrides", "is_known"]

_STREAMS: Final = "ksql.streams."
_FREE: Final = ("ksql.functions.", "request.ksql.")
_PREFIXES: Final = ("main.consumer.", "restore.consumer.", "global.consumer.", "consumer.",
                    "producer.", "admin.")  # fmt: skip
_IMMUTABLE: Final = frozenset({
    "bootstrap.servers",
    "ksql.extension.dir",
    "ksql.query.persistent.active.limit",
    "ksql.pull.queries.enable",
    "ksql.hidden.topics",
    "ksql.readonly.topics",
    "ksql.source.table.materialization.enabled",
    "ksql.headers.columns.enabled",
    "ksql.service.id",
    "ksql.functions.python.modules",
})  # fmt: skip
#: ksqlDB's own that this server has no use for. Clients may set them, as they may there.
_WITHOUT_EFFECT: Final = frozenset(
    [
        "ksql.cast.strings.preserve.nulls",
        "ksql.create.or.replace.enabled",
        "ksql.create.topic.inherit.source.replicas.enabled",
        "ksql.error.classifier.regex",
        "ksql.fail.on.production.error",
        "ksql.lambdas.enabled",
        "ksql.nested.error.set.null",
        "ksql.persistence.wrap.single.values",
        "ksql.persistent.prefix",
        "ksql.query.pull.interpreter.enabled",
        "ksql.query.pull.max.allowed.offset.lag",
        "ksql.query.pull.metrics.enabled",
        "ksql.query.push.v2.interpreter.enabled",
        "ksql.query.push.v2.registry.installed",
        "ksql.sink.partitions",
        "ksql.sink.replicas",
        "ksql.sink.window.change.log.additional.retention",
        "ksql.suppress.buffer.size.bytes",
        "ksql.transient.prefix",
        "ksql.udf.collect.metrics",
        "ksql.udfs.enabled",
        "ksql.websocket.connection.max.timeout.ms",
        "ksql.windowed.session.key.legacy",
    ]
)
#: Lists of classes. The server would import what they name.
_CODE: Final = frozenset(
    ["interceptor.classes", "metric.reporters", "partition.assignment.strategy"]
)
_KAFKAS: Final = ("org.apache.kafka.", "io.confluent.")
#: Streams' own first: some of its keys allow more than the clients' keys of that name.
_DEFINITIONS: Final[tuple[ConfigDef, ...]] = (STREAMS_KEYS, CONSUMER_KEYS, PRODUCER_KEYS)


def is_known(name: str) -> bool:
    """Whether it is a property of the server, of Streams, or of one of its clients."""
    plain = _plain(name)
    if name.startswith(_FREE) or name in _WITHOUT_EFFECT or name in SQL_KEYS:
        return True
    internal = plain.startswith(("__", "topic."))
    return internal or any(plain in each for each in _DEFINITIONS)


def check_overrides(properties: Mapping[str, Any], denied: Collection[str]) -> None:
    """Raise KsqlException for the first property that a request must not set like this."""
    forbidden = sorted(name for name in properties if name in denied or _plain(name) in denied)
    if forbidden:
        raise KsqlException(
            "One or more properties overrides set locally are prohibited by the KSQL server "
            f"denylist (use UNSET to reset their default value): [{', '.join(forbidden)}]"
        )
    for name, value in properties.items():
        if not is_known(name):
            raise KsqlException(
                f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'"
            )
        if _plain(name) in _IMMUTABLE or name in _IMMUTABLE or _plain(name).startswith("ssl."):
            raise KsqlException(f"Cannot override property '{name}'")
        _check_value(name, value)


def _check_value(name: str, value: Any) -> None:
    plain = _plain(name)
    if plain == "auto.offset.reset" and isinstance(value, str) and value.lower() == "none":
        raise KsqlException("'none' is not valid for this property within KSQL")
    definition = SQL_KEYS if name in SQL_KEYS else None
    for each in _DEFINITIONS:
        definition = definition or (each if plain in each else None)
    if definition is None or value is None:
        return
    key = definition[name if definition is SQL_KEYS else plain]
    names_code = key.type is ConfigType.CLASS or plain in _CODE
    if names_code and not str(value).startswith(_KAFKAS):
        raise KsqlException(
            f"Cannot override property '{name}' with '{value}': a request may name Kafka's own "
            "classes only. Set others in the server's file."
        )
    try:
        key.parse(_text(value))
    except (ConfigError, ValueError) as error:
        raise KsqlException(
            f"Failed to coerce type of value '{value}' for key '{name}': {error}"
        ) from error


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def _plain(name: str) -> str:
    """Without the prefixes of the settings of queries and of their clients."""
    plain = name.removeprefix(_STREAMS)
    for prefix in _PREFIXES:
        if plain.startswith(prefix):
            return plain.removeprefix(prefix)
    return plain
