"""The options of the source: those of Spark's Kafka source, its defaults and refusals.

Pure. Invariants: names are compared without regard to case, as Spark does; exactly one of
`assign`, `subscribe` and `subscribePattern` is there; an unknown option is refused with the nearest
name, so that a misspelt option does not silently do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from moldau.client.config import CONSUMER_KEYS, parse_settings
from moldau.client.errors import ConfigError
from moldau.client.network_settings import NetworkSettings
from moldau.client.topics import TopicPartition
from moldau.config.suggestions import did_you_mean
from moldau.spark.option_values import (
    boolean,
    duration_ms,
    natural,
    no_match,
    nonempty,
    positive,
    timestamp,
)
from moldau.spark.schemas.machine.options import NAMES as SCHEMA_NAMES
from moldau.spark.schemas.machine.options import SchemaOptions, parse_schema_options
from moldau.spark.source.machine.limits import AUTO
from moldau.spark.source.machine.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    parse_offsets,
    parse_partitions,
)
from moldau.spark.source.machine.patterns import PatternError, TopicPattern
from moldau.spark.topic_options import KAFKA_PREFIX, Given, OptionError

__all__ = [
    "Assign",
    "AtOffsets",
    "AtTimestamp",
    "AtTimestamps",
    "OptionError",
    "Place",
    "SourceOptions",
    "Strategy",
    "Subscribe",
    "SubscribePattern",
    "parse_options",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Subscribe:
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    pattern: TopicPattern


@dataclass(frozen=True, slots=True)
class Assign:
    partitions: frozenset[TopicPartition]


Strategy = Subscribe | SubscribePattern | Assign


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """A given offset in every partition; -2 is the first, -1 the last."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class AtTimestamps:
    """The first record at or after a time in ms, for every partition its own."""

    times: Offsets


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record at or after a time in ms, in all partitions."""

    time_ms: int


#: Where to begin or end. An int stands for all partitions: EARLIEST or LATEST.
Place = int | AtOffsets | AtTimestamps | AtTimestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Checked options."""

    #: The `kafka.*` ones without the prefix: the client's settings.
    config: Mapping[str, str] = field(repr=False)
    strategy: Strategy
    #: None: not given. A stream begins at the end, a batch at the beginning.
    starting: Place | None = None
    ending: Place | None = None
    #: Without a record at or after the starting time: an error, or the end.
    latest_if_no_match: bool = False
    max_offsets_per_trigger: int | None = None
    #: With `maxOffsetsPerTrigger: auto`: how long a batch of a backlog should take.
    target_batch_ms: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60 * 1000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id: str | None = None
    group_id_prefix: str | None = None
    mirror_offsets: bool = True
    isolation_level: str = "read_uncommitted"
    poll_timeout_ms: int = 120_000
    #: Columns with schemas of a registry; false without any.
    schemas: SchemaOptions = field(default_factory=SchemaOptions)
    fetch_offset_num_retries: int = 3
    fetch_offset_retry_interval_ms: int = 1_000
    #: What the user should know, though it is no error.
    warnings: tuple[str, ...] = field(default=())

    @property
    def read_committed(self) -> bool:
        return self.isolation_level == "read_committed"


# By the name as it is written; compared in lower case.
_NAMES: Final = (
    "assign",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "targetBatchDuration",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "groupId",
    "mirrorOffsets",
    "isolation.level",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    *SCHEMA_NAMES,
)
# What Spark itself hands over, and the sink's options, which programs keep in one place with these.
_IGNORED: Final = frozenset(
    (
        "path",
        "paths",
        "checkpointlocation",
        "queryname",
        "outputmode",
        "topic",
        "exactlyonce",
        "txnappid",
        "txnversion",
    )
)
_TARGET_BATCH_MS: Final = 5_000
_ONE_OF: Final = "subscribe, subscribePattern, assign"
_REFUSED: Final = {
    "auto.offset.reset": (
        "Kafka option 'auto.offset.reset' is not supported. Set the source option "
        "'startingOffsets' to 'earliest' or 'latest' instead: the query itself keeps which "
        "offsets it has read, and a restarted one goes on where it was."
    ),
    "key.deserializer": (
        "Kafka option 'key.deserializer' is not supported: keys come as bytes. Use DataFrame "
        "operations to deserialize them."
    ),
    "value.deserializer": (
        "Kafka option 'value.deserializer' is not supported: values come as bytes. Use DataFrame "
        "operations to deserialize them."
    ),
    "enable.auto.commit": (
        "Kafka option 'enable.auto.commit' is not supported: the checkpoint holds what was read; "
        "'groupId' names the consumer group that it is mirrored to."
    ),
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}


def parse_options(given: Mapping[str, str], *, streaming: bool | None = None) -> SourceOptions:
    """Checked options, for a stream, a batch, or (None) what holds for both.

    Raises OptionError.
    """
    options = Given(given)
    _check_names(options)
    warnings: list[str] = []
    config = _kafka_config(options)
    strategy = _strategy(options)
    minimum = options.parsed("minOffsetsPerTrigger", positive)
    maximum, target_batch_ms = _maximum(options)
    if minimum is not None and maximum is not None and minimum > maximum:
        raise OptionError(
            f"The value of minOffsetsPerTrigger({minimum}) is higher than the "
            f"maxOffsetsPerTrigger({maximum})."
        )
    result = SourceOptions(
        config=config,
        strategy=strategy,
        starting=_place(options, "starting"),
        ending=_place(options, "ending"),
        latest_if_no_match=options.parsed("startingOffsetsByTimestampStrategy", no_match) or False,
        max_offsets_per_trigger=maximum,
        target_batch_ms=target_batch_ms,
        min_offsets_per_trigger=minimum,
        max_trigger_delay_ms=options.parsed_or("maxTriggerDelay", duration_ms, 15 * 60 * 1000),
        min_partitions=options.parsed("minPartitions", positive),
        max_records_per_partition=options.parsed("maxRecordsPerPartition", positive),
        fail_on_data_loss=options.parsed_or("failOnDataLoss", boolean, True),
        include_headers=options.parsed_or("includeHeaders", boolean, False),
        group_id=_group_id(options, config, warnings),
        group_id_prefix=options.parsed("groupIdPrefix", nonempty),
        mirror_offsets=options.parsed_or("mirrorOffsets", boolean, True),
        isolation_level=_isolation_level(options, config),
        poll_timeout_ms=options.parsed_or("kafkaConsumer.pollTimeoutMs", positive, 120_000),
        fetch_offset_num_retries=options.parsed_or("fetchOffset.numRetries", positive, 3),
        fetch_offset_retry_interval_ms=options.parsed_or(
            "fetchOffset.retryIntervalMs", natural, 1_000
        ),
        schemas=parse_schema_options(options, _topics(strategy)),
        warnings=tuple(warnings),
    )
    if streaming is True:
        _check_stream(options)
    elif streaming is False:
        result = _checked_batch(options, result)
    return result


def _topics(strategy: Strategy) -> tuple[str, ...]:
    match strategy:
        case Subscribe(topics):
            return topics
        case Assign(partitions):
            return tuple({each.topic for each in partitions})
        case _:
            return ()


def _check_names(options: Given) -> None:
    known = {name.lower(): name for name in _NAMES}
    for name in options.names():
        if name not in known and name not in _IGNORED:
            # Compared in lower case, shown as it is written.
            guess = did_you_mean(name, [*known, *(KAFKA_PREFIX + each for each in CONSUMER_KEYS)])
            for lower, written in known.items():
                guess = guess.replace(f" {lower}?", f" {written}?")
            raise OptionError(
                f"Unknown option '{name}' for format(\"moldau\").{guess} "
                "Settings of the Kafka client begin with 'kafka.'."
            )


def _kafka_config(options: Given) -> dict[str, str]:
    config = options.kafka_settings("consumer", _REFUSED)
    try:
        # The client checks them too, but only when the query runs.
        NetworkSettings.of(parse_settings(CONSUMER_KEYS, config))
    except ConfigError as error:
        raise OptionError(f"Option 'kafka.{error.key}': {error}") from None
    return config


def _strategy(options: Given) -> Strategy:
    named = [
        name
        for name in ("assign", "subscribe", "subscribePattern")
        if options.get(name) is not None
    ]
    if not named:
        raise OptionError(
            f"One of the following options must be specified for Kafka source: {_ONE_OF}. "
            "'subscribe' takes topics, separated by commas."
        )
    if len(named) > 1:
        raise OptionError(
            f"Only one of the following options can be specified for Kafka source: {_ONE_OF}. "
            f"There are {' and '.join(named)}."
        )
    name = named[0]
    text = options.get(name) or ""
    if name == "assign":
        return _assign(text)
    if name == "subscribe":
        topics = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
        if not topics:
            raise OptionError(
                f"No topics to subscribe to as specified value for option 'subscribe' is '{text}'"
            )
        return Subscribe(topics)
    if not text.strip():
        raise OptionError(
            "Pattern to subscribe is empty as specified value for option "
            f"'subscribePattern' is '{text}'"
        )
    try:
        return SubscribePattern(TopicPattern(text.strip()))
    except PatternError as error:
        raise OptionError(f"Option 'subscribePattern' is '{text}': {error}") from None


def _assign(text: str) -> Assign:
    if not text.strip().startswith("{"):
        raise OptionError(
            f"No topicpartitions to assign as specified value for option 'assign' is '{text}'"
        )
    try:
        partitions = parse_partitions(text)
    except ValueError as error:
        raise OptionError(
            f'Option \'assign\': Expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {text} '
            f"({error})"
        ) from None
    if not partitions:
        raise OptionError(
            f"No topicpartitions to assign as specified value for option 'assign' is '{text}'"
        )
    return Assign(partitions)


def _place(options: Given, edge: str) -> Place | None:
    """In Spark's order of preference: one time, times by partition, offsets."""
    time_ms = options.parsed(f"{edge}Timestamp", timestamp)
    if time_ms is not None:
        return AtTimestamp(time_ms)
    name = f"{edge}OffsetsByTimestamp"
    text = options.get(name)
    if text is not None:
        try:
            times = parse_offsets(text)
        except ValueError as error:
            raise OptionError(
                f'Option \'{name}\': Expected e.g. {{"topicA": {{"0": 123456789, "1": 123456789}}, '
                f'"topicB": {{"0": 123456789}}}}, got {text} ({error})'
            ) from None
        if any(each < 0 for each in times.values()):
            raise OptionError(f"Option '{name}': times are milliseconds since 1970, got {text}")
        return AtTimestamps(times)
    name = f"{edge}Offsets"
    text = options.get(name)
    if text is None:
        return None
    match text.strip().lower():
        case "earliest":
            return EARLIEST
        case "latest":
            return LATEST
    try:
        offsets = parse_offsets(text)
        low = [str(key) for key, offset in offsets.items() if offset < EARLIEST]
        if low:
            raise ValueError(f"{', '.join(low)}: below -2, which stands for the first")
    except ValueError as error:
        raise OptionError(
            f"Option '{name}': Expected 'earliest', 'latest' or e.g. "
            f'{{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, got {text} ({error})'
        ) from None
    return AtOffsets(offsets)


def _check_stream(options: Given) -> None:
    if options.get("endingOffsets") is not None:
        raise OptionError("ending offset not valid in streaming queries: remove 'endingOffsets'")
    for name in ("endingOffsetsByTimestamp", "endingTimestamp"):
        if options.get(name) is not None:
            raise OptionError(f"ending timestamp not valid in streaming queries: remove '{name}'")


def _checked_batch(options: Given, parsed: SourceOptions) -> SourceOptions:
    starting, ending = parsed.starting, parsed.ending
    if starting == LATEST:
        raise OptionError("starting offset can't be latest for batch queries on Kafka")
    if ending == EARLIEST:
        raise OptionError("ending offset can't be earliest for batch queries on Kafka")
    if isinstance(starting, AtOffsets):
        for key, offset in sorted(starting.offsets.items()):
            if offset == LATEST:
                raise OptionError(
                    f"startingOffsets for {key} can't be latest for batch queries on Kafka"
                )
    if isinstance(ending, AtOffsets):
        for key, offset in sorted(ending.offsets.items()):
            if offset == EARLIEST:
                raise OptionError(
                    f"ending offset for {key} can't be earliest for batch queries on Kafka"
                )
    _check_order(starting, ending)
    ignored = tuple(
        f"{name} option ignored in batch queries"
        for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
        if options.get(name) is not None
    )
    return replace(parsed, warnings=parsed.warnings + ignored)


def _check_order(starting: Place | None, ending: Place | None) -> None:
    if isinstance(starting, AtOffsets) and isinstance(ending, AtOffsets):
        first, last, what = starting.offsets, ending.offsets, "offset"
    elif isinstance(starting, AtTimestamps) and isinstance(ending, AtTimestamps):
        first, last, what = starting.times, ending.times, "timestamp"
    else:
        return
    if first.keys() != last.keys():
        raise OptionError(
            "The specified start offset and end offset should have the same topic-partitions. "
            f"Only one of them has {', '.join(sorted(map(str, first.keys() ^ last.keys())))}."
        )
    for key in sorted(first):
        if 0 <= last[key] < first[key]:
            raise OptionError(
                f"The specified start {what} {first[key]} is greater than the end {what} "
                f"{last[key]} for topic {key.topic} partition {key.partition}."
            )


def _maximum(options: Given) -> tuple[int | None, int | None]:
    """The limit of a batch, or how long one should take where the limit is to be found."""
    target = options.parsed("targetBatchDuration", duration_ms)
    if str(options.get("maxOffsetsPerTrigger")).strip().lower() == AUTO:
        return None, _TARGET_BATCH_MS if target is None else max(1, target)
    if target is not None:
        raise OptionError("Option 'targetBatchDuration' needs maxOffsetsPerTrigger: auto")
    return options.parsed("maxOffsetsPerTrigger", _maximum_offsets), None


def _maximum_offsets(text: str) -> int:
    try:
        return positive(text)
    except ValueError as error:
        raise ValueError(f"{error}, or {AUTO}") from None


def _group_id(options: Given, config: dict[str, str], warnings: list[str]) -> str | None:
    own = options.parsed("groupId", nonempty)
    kafka = config.pop("group.id", None)
    if kafka is not None and not kafka.strip():
        raise OptionError("Option 'kafka.group.id' is empty")
    if own is not None and kafka is not None and own != kafka.strip():
        raise OptionError(
            f"Options 'groupId' ({own}) and 'kafka.group.id' ({kafka}) name different groups: "
            "give one of them"
        )
    group = own or (kafka.strip() if kafka is not None else None)
    if group is not None and options.get("groupIdPrefix") is not None:
        warnings.append(f"Option groupIdPrefix is ignored: the group {group} is given.")
    return group


def _isolation_level(options: Given, config: dict[str, str]) -> str:
    plain = options.parsed("isolation.level", str)
    kafka = config.pop("isolation.level", None)
    if plain is not None and kafka is not None and plain != kafka.strip():
        raise OptionError(
            f"Options 'isolation.level' ({plain}) and 'kafka.isolation.level' ({kafka}) differ: "
            "give one of them"
        )
    level = plain or (kafka or "read_uncommitted").strip()
    if level.lower() not in ("read_committed", "read_uncommitted"):
        raise OptionError(
            f"Option 'kafka.isolation.level' is '{level}': read_committed or read_uncommitted"
        )
    return level.lower()
