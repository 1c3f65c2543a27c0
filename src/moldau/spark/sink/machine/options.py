"""The options and columns of the sink: those of Spark's Kafka sink, and what exactly once adds.

Pure. Invariants: names are compared without regard to case, as Spark does; whatever is wrong
with options or columns is said before anything is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from moldau.client.config import PRODUCER_KEYS, keys_of
from moldau.config.suggestions import closest_name
from moldau.spark.option_values import boolean, whole
from moldau.spark.schemas.machine.options import NAMES as SCHEMA_NAMES
from moldau.spark.schemas.machine.options import SchemaOptions, parse_schema_options
from moldau.spark.topic_options import Given, OptionError

__all__ = ["TRANSACTION_TIMEOUT_MS", "SinkOptions", "check_columns", "parse"]

TRANSACTION_TIMEOUT_MS: Final = 15 * 60 * 1000

_NAMES: Final = (
    "topic",
    "includeHeaders",
    "exactlyOnce",
    "txnAppId",
    "txnVersion",
    *SCHEMA_NAMES,
)
_REFUSED: Final = {
    "key.serializer": (
        "Kafka option 'key.serializer' is not supported as keys are serialized with "
        "ByteArraySerializer: make the column key a string or binary one."
    ),
    "value.serializer": (
        "Kafka option 'value.serializer' is not supported as values are serialized with "
        "ByteArraySerializer: make the column value a string or binary one."
    ),
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}
# What would make a transactional producer something else.
_EXACTLY_ONCE_VALUES: Final = {"acks": ("all", "-1"), "enable.idempotence": ("true",)}

_TEXT: Final = ("string", "binary")
_HEADERS: Final = "array<struct<key:string,value:binary>>"
# Types by column; those of characters count as strings.
_COLUMNS: Final = {
    "key": _TEXT,
    "value": _TEXT,
    "topic": ("string",),
    "partition": ("int",),
    "headers": (_HEADERS,),
    "timestamp": ("timestamp",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Checked options."""

    #: The `kafka.*` ones without the prefix: the producer's settings.
    config: Mapping[str, str] = field(repr=False)
    topic: str | None
    include_headers: bool
    exactly_once: bool
    #: What transactional ids begin with; empty if not exactly once, or if it is one write's own.
    prefix: str
    #: For a batch that knows its name: (txnAppId, txnVersion).
    transaction: tuple[str, int] | None
    #: Columns with schemas of a registry; false without any.
    schemas: SchemaOptions = field(default_factory=SchemaOptions)


def parse(given: Mapping[str, str], *, is_stream: bool) -> SinkOptions:
    """Raises OptionError."""
    return _parsed(tuple(given.items()), is_stream)


# Two processes of Spark's parse the same options for every micro-batch.
@lru_cache(maxsize=16)
def _parsed(given: tuple[tuple[str, str], ...], is_stream: bool) -> SinkOptions:
    options = Given(dict(given))
    _check_names(options)
    # A name that no client has is not the producer's either.
    found = options.kafka_settings("producer", _REFUSED)
    config = keys_of(PRODUCER_KEYS, found)
    transaction = _transaction(options, is_stream=is_stream)
    exactly_once = options.parsed_or("exactlyOnce", boolean, is_stream or transaction is not None)
    if transaction is not None and not exactly_once:
        raise OptionError("txnAppId and txnVersion need exactlyOnce, which is set to false.")
    prefix = config.pop("transactional.id", "").strip()
    if exactly_once:
        _check_exactly_once(config)
        prefix = prefix or _default_prefix(options, transaction, is_stream=is_stream)
    elif prefix:
        raise OptionError(
            "Option 'kafka.transactional.id' needs 'exactlyOnce' to be true: it is the prefix of "
            "the transactional ids of an exactly-once write."
        )
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise OptionError("Option 'topic' is empty: name the topic to write to.")
    return SinkOptions(
        config=config,
        topic=topic,
        include_headers=options.parsed_or("includeHeaders", boolean, True),
        exactly_once=exactly_once,
        prefix=prefix,
        transaction=transaction,
        schemas=parse_schema_options(options, () if topic is None else (topic,)),
    )


def _check_names(options: Given) -> None:
    """Spark gives a sink more options than its own, so only misspelt ones are refused."""
    known = {name.lower(): name for name in _NAMES}
    for name in options.names():
        guess = None if name in known else closest_name(name, known)
        if guess is not None:
            raise OptionError(f"Unknown option '{name}'. Did you mean '{known[guess]}'?")


def _transaction(options: Given, *, is_stream: bool) -> tuple[str, int] | None:
    app_id, version = options.get("txnAppId"), options.parsed("txnVersion", whole)
    if app_id is None and version is None:
        return None
    if is_stream:
        raise OptionError(
            "txnAppId and txnVersion are for batch writes inside foreachBatch; a stream has its "
            "checkpoint and is exactly once without them."
        )
    if not app_id or version is None:
        raise OptionError(
            "Give both txnAppId and txnVersion: a name of the application, and the number of the "
            "batch, which foreachBatch gets as its second argument."
        )
    return app_id, version


def _check_exactly_once(config: Mapping[str, str]) -> None:
    for name, allowed in _EXACTLY_ONCE_VALUES.items():
        value = config.get(name)
        if value is not None and value.strip().lower() not in allowed:
            raise OptionError(
                f"Option 'kafka.{name}' is '{value}': an exactly-once write needs {allowed[0]}; "
                "or set exactlyOnce to false."
            )


def _default_prefix(options: Given, transaction: tuple[str, int] | None, *, is_stream: bool) -> str:
    if transaction is not None:
        # One batch may be written to several topics, each of which is a write of its own.
        return _hashed(f"txn:{transaction[0]}:{options.get('topic') or ''}")
    if not is_stream:
        return ""
    location = (options.get("checkpointLocation") or "").strip()
    if not location:
        raise OptionError(
            "An exactly-once stream needs a name that stays: set the option checkpointLocation "
            "or kafka.transactional.id, or set exactlyOnce to false."
        )
    path = location.removeprefix("file:")
    if path.startswith("/"):
        # The same folder, however many slashes it is written with.
        path = "/" + path.strip("/")
    return _hashed(f"checkpoint:{path}")


def _hashed(text: str) -> str:
    return "moldau-spark-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def check_columns(types: Mapping[str, str], options: SinkOptions) -> tuple[str, ...]:
    """The columns that are written, in their order; `types` are Spark's simple type names by
    column. Raises OptionError."""
    if "value" not in types:
        raise OptionError(
            "Required attribute 'value' not found: the DataFrame has "
            f"{', '.join(types) or 'no columns'}; name the column to write 'value'."
        )
    if options.topic is None and "topic" not in types:
        raise OptionError(
            "topic option required when no 'topic' attribute is present. Use the topic option for "
            "setting a topic."
        )
    written = []
    for name, kind in types.items():
        expected = _COLUMNS.get(name)
        if expected is None:
            continue
        if (name == "topic" and options.topic is not None) or (
            name == "headers" and not options.include_headers
        ):
            # As in Spark's own sink the option stands above the column.
            continue
        if name in options.schemas.columns:
            written.append(name)
            continue
        if _plain(kind) not in expected:
            wanted = " or ".join(each.upper() for each in expected)
            raise OptionError(
                f"{name} attribute unsupported type {kind.upper()}. {name} must be a(n) {wanted}."
            )
        written.append(name)
    if options.schemas.ids_in_headers and "headers" not in written:
        if "headers" in types:
            raise OptionError(
                "Ids of schemas in headers need 'includeHeaders' to be true, its default."
            )
        written.append("headers")
    return tuple(written)


def _plain(kind: str) -> str:
    kind = kind.lower().replace(" ", "")
    if kind.startswith(("varchar", "char", "stringcollate")):
        return "string"
    return kind
