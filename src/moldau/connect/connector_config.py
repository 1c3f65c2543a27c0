"""The settings that every connector has, for sources and sinks, as Connect reports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    ConfigError,
    Importance,
    Kind,
    ListOf,
    NonEmpty,
    OneOf,
    Range,
    ValidRegex,
    Width,
)
from moldau.connect.machine.versions import VersionError, parse_range

COMMON, TRANSFORMS, PREDICATES = "Common", "Transforms", "Predicates"
ERRORS, TOPIC_CREATION = "Error Handling", "Topic Creation"
EXACTLY_ONCE, OFFSETS_TOPIC = "Exactly Once Support", "offsets.topic"


def _name(key: str, value: Any) -> None:
    if value is None:
        return
    if not value:
        raise ConfigError.invalid(key, value, "String may not be empty")
    found = [ord(each) for each in value if ord(each) < 32 or 127 <= ord(each) < 160]
    if found:
        shown = ", ".join(map(str, found))
        raise ConfigError.invalid(
            key,
            value,
            f"String may not contain control sequences but had the following ASCII chars: {shown}",
        )


def _replication(key: str, value: Any) -> None:
    if value is not None and value != -1 and value < 1:
        raise ConfigError.invalid(
            key, value, "Value must be -1 (the broker's default) or at least 1"
        )


_NAME = CheckedBy(_name, "non-empty string without ISO control characters")
_COUNT = CheckedBy(_replication, "-1 or a positive number")


def _version_range(key: str, value: Any) -> None:
    if value is not None:
        try:
            parse_range(value)
        except VersionError as error:
            raise ConfigError.invalid(key, value, str(error)) from None


VERSION_RANGE = CheckedBy(_version_range, "a version, or a range such as [1.0,2.0)")


def _common() -> ConfigDef:
    found = ConfigDef()
    low, medium, high = Importance.LOW, Importance.MEDIUM, Importance.HIGH
    rows: tuple[tuple[Any, ...], ...] = (
        ("name", Kind.STRING, None, _NAME, high, COMMON, Width.MEDIUM, "Connector name",
         "A name for the connector that is unique in the cluster."),
        ("connector.class", Kind.STRING, None, None, high, COMMON, Width.LONG, "Connector class",
         "The connector: its full class name or its short name, such as FileStreamSink."),
        ("connector.plugin.version", Kind.STRING, None, VERSION_RANGE, medium, COMMON, Width.MEDIUM,
         "Connector version", "The version of the connector."),
        ("tasks.max", Kind.INT, 1, Range(1), high, COMMON, Width.SHORT, "Tasks max",
         "How many tasks the connector may have at most."),
        ("tasks.max.enforce", Kind.BOOLEAN, True, None, low, COMMON, Width.SHORT,
         "Enforce tasks max", "Whether a connector that makes more tasks fails."),
        ("key.converter", Kind.CLASS, None, None, low, COMMON, Width.SHORT, "Key converter class",
         "Converts keys; the worker's converter if it is not set."),
        ("key.converter.plugin.version", Kind.STRING, None, VERSION_RANGE, low, COMMON, Width.SHORT,
         "Key converter version", "The version of the key converter."),
        ("value.converter", Kind.CLASS, None, None, low, COMMON, Width.SHORT,
         "Value converter class",
         "Converts values; the worker's converter if it is not set."),
        ("value.converter.plugin.version", Kind.STRING, None, VERSION_RANGE, low, COMMON,
         Width.SHORT, "Value converter version", "The version of the value converter."),
        ("header.converter", Kind.CLASS, None, None, low, COMMON, Width.SHORT,
         "Header converter class",
         "Converts headers; the worker's converter if it is not set."),
        ("header.converter.plugin.version", Kind.STRING, None, VERSION_RANGE, low, COMMON,
         Width.SHORT, "Header converter version", "The version of the header converter."),
        ("transforms", Kind.LIST, (), ListOf(), low, TRANSFORMS, Width.LONG, "Transforms",
         "Names for the transformations of records, in their order."),
        ("predicates", Kind.LIST, (), ListOf(), low, PREDICATES, Width.LONG, "Predicates",
         "Names for the predicates that transformations use."),
        ("config.action.reload", Kind.STRING, "restart", OneOf(("none", "restart")), low, COMMON,
         Width.MEDIUM, "Reload Action",
         "What to do when a config provider says that a value has expired."),
        ("errors.retry.timeout", Kind.LONG, 0, None, medium, ERRORS, Width.MEDIUM,
         "Retry Timeout for Errors",
         "For how many milliseconds a failed step is tried again: 0 not at all, -1 for ever."),
        ("errors.retry.delay.max.ms", Kind.LONG, 60000, None, medium, ERRORS, Width.MEDIUM,
         "Maximum Delay Between Retries for Errors",
         "The longest pause between two tries, in milliseconds."),
        ("errors.tolerance", Kind.STRING, "none", OneOf(("none", "all")), medium, ERRORS,
         Width.SHORT, "Error Tolerance",
         "none: a record that fails ends the task; all: it is skipped."),
        ("errors.log.enable", Kind.BOOLEAN, False, None, medium, ERRORS, Width.SHORT, "Log Errors",
         "Whether failures that are tolerated are logged."),
        ("errors.log.include.messages", Kind.BOOLEAN, False, None, medium, ERRORS, Width.SHORT,
         "Log Error Details", "Whether the log has the record that failed."),
    )  # fmt: skip
    for number, row in enumerate(rows, 1):
        name, kind, default, validator, importance, group, width, display, doc = row
        attributes = {
            "validator": validator,
            "importance": importance,
            "group": group,
            "width": width,
            "display_name": display,
            "doc": doc,
        }
        if group != ERRORS:
            # As in Kafka, those of the first groups are counted together.
            attributes["order"] = number
        if name in ("name", "connector.class"):
            found.define(name, kind, **attributes)
        else:
            found.define(name, kind, default, **attributes)
    return found


def _dead_letters(found: ConfigDef, for_what: str) -> ConfigDef:
    return (
        found.define(
            "errors.deadletterqueue.topic.name",
            Kind.STRING,
            "",
            importance=Importance.MEDIUM,
            group=ERRORS,
            width=Width.MEDIUM,
            display_name="Dead Letter Queue Topic Name",
            doc=f"The topic for records {for_what}; none if it is empty.",
        )
        .define(
            "errors.deadletterqueue.topic.replication.factor",
            Kind.SHORT,
            3,
            importance=Importance.MEDIUM,
            group=ERRORS,
            width=Width.MEDIUM,
            display_name="Dead Letter Queue Topic Replication Factor",
            doc="The replication factor of the dead-letter topic, if the worker creates it.",
        )
        .define(
            "errors.deadletterqueue.context.headers.enable",
            Kind.BOOLEAN,
            False,
            importance=Importance.MEDIUM,
            group=ERRORS,
            width=Width.MEDIUM,
            display_name="Enable Error Context Headers",
            doc="Whether headers say where and why a record failed; they begin with "
            "__connect.errors.",
        )
    )


def _sink() -> ConfigDef:
    found = _common()
    found.define(
        "topics",
        Kind.LIST,
        (),
        importance=Importance.HIGH,
        group=COMMON,
        width=Width.LONG,
        display_name="Topics",
        order=4,
        doc="The topics to read.",
    ).define(
        "topics.regex",
        Kind.STRING,
        "",
        validator=ValidRegex(),
        importance=Importance.HIGH,
        group=COMMON,
        width=Width.LONG,
        order=4,
        display_name="Topics regex",
        doc="A regular expression for the topics to read, instead of topics.",
    )
    _dead_letters(found, "that cannot be delivered to the sink")
    return found.define(
        "errors.put.record.by.record",
        Kind.BOOLEAN,
        False,
        importance=Importance.LOW,
        group=ERRORS,
        width=Width.SHORT,
        display_name="Put Record by Record",
        doc="Moldau only: whether records that `put` refused with a data error are put again one "
        "by one, so that only the bad ones fail.",
    )


def _source() -> ConfigDef:
    found = _common()
    found.define(
        "topic.creation.groups",
        Kind.LIST,
        (),
        importance=Importance.LOW,
        group=TOPIC_CREATION,
        width=Width.LONG,
        display_name="Topic Creation Groups",
        doc="Groups of topics that are created with settings of their own.",
    ).define(
        "exactly.once.support",
        Kind.STRING,
        "requested",
        validator=OneOf(("REQUIRED", "REQUESTED"), ignore_case=True),
        importance=Importance.MEDIUM,
        group=EXACTLY_ONCE,
        width=Width.SHORT,
        display_name="Exactly once support",
        order=2,
        doc="required: the connector is refused unless its records are exactly once.",
    ).define(
        "transaction.boundary",
        Kind.STRING,
        "poll",
        validator=OneOf(("INTERVAL", "POLL", "CONNECTOR"), ignore_case=True),
        importance=Importance.MEDIUM,
        group=EXACTLY_ONCE,
        width=Width.SHORT,
        display_name="Transaction Boundary",
        order=3,
        doc="When transactions are committed: after each poll, by time, or as the connector says.",
    ).define(
        "transaction.boundary.interval.ms",
        Kind.LONG,
        None,
        validator=CheckedBy(_at_least_zero, "[0,...]"),
        importance=Importance.LOW,
        group=EXACTLY_ONCE,
        width=Width.SHORT,
        display_name="Transaction boundary interval",
        order=4,
        doc="The time between commits with transaction.boundary=interval; the worker's "
        "offset.flush.interval.ms if it is not set.",
    ).define(
        "offsets.storage.topic",
        Kind.STRING,
        None,
        validator=NonEmpty(),
        importance=Importance.LOW,
        group=OFFSETS_TOPIC,
        width=Width.LONG,
        display_name="Offsets topic",
        doc="A topic of its own for the connector's offsets.",
    )
    return _dead_letters(found, "of a source that cannot be converted (Moldau only)")


def _at_least_zero(key: str, value: Any) -> None:
    if value is not None and value < 0:
        raise ConfigError.invalid(key, value, "Value must be at least 0")


SINK = _sink()
SOURCE = _source()


def source_config(config: Mapping[str, Any], *, topic_creation: bool = True) -> ConfigDef:
    """The settings of a source, with those of its topic creation groups."""
    found = SOURCE.including()
    if not topic_creation:
        return found
    wanted = any(key.startswith("topic.creation.") for key in config)
    if not wanted:
        return found
    names = [each.strip() for each in str(config.get("topic.creation.groups") or "").split(",")]
    for group in ("default", *(each for each in names if each and each != "default")):
        _topic_group(found, group)
    return found


def _topic_group(found: ConfigDef, group: str) -> None:
    prefix = f"topic.creation.{group}."
    title = f"{TOPIC_CREATION}: {group}"
    is_default = group == "default"
    required: dict[str, Any] = {} if is_default else {"default": None}
    if not is_default:
        for name, doc in (("include", "create"), ("exclude", "leave out")):
            found.define(
                prefix + name,
                Kind.LIST,
                (),
                importance=Importance.LOW,
                group=title,
                width=Width.LONG,
                display_name=f"{name.capitalize()} Topics",
                doc=f"Regular expressions for the topics to {doc}.",
            )
    found.define(
        prefix + "replication.factor",
        Kind.SHORT,
        validator=_COUNT,
        importance=Importance.LOW,
        group=title,
        width=Width.LONG,
        display_name="Replication Factor for Topics",
        doc="The replication factor of new topics; -1 for the broker's default.",
        **required,
    ).define(
        prefix + "partitions",
        Kind.INT,
        validator=_COUNT,
        importance=Importance.LOW,
        group=title,
        width=Width.LONG,
        display_name="Partition Count for Topics",
        doc="The number of partitions of new topics; -1 for the broker's default.",
        **required,
    )
