"""The settings of an application, checked, and those of its clients."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from moldau.client.config.admin_keys import ADMIN_KEYS
from moldau.client.config.consumer_keys import CONSUMER_KEYS
from moldau.client.config.producer_keys import PRODUCER_KEYS
from moldau.client.config.settings import parse_settings
from moldau.client.errors import ConfigError
from moldau.config.definition import ConfigDef
from moldau.config.section import Section
from moldau.config.suggestions import did_you_mean
from moldau.config.variables import is_provider_key
from moldau.streams.hosts.settings_keys import (
    EXACTLY_ONCE,
    NO_EFFECT,
    REFUSED,
    STREAMS_KEYS,
)
from moldau.streams.machine.definitions import TimestampExtractor
from moldau.streams.machine.error_handlers import (
    Handlers,
    fail_on_error,
    retry_if_retriable,
    skip_on_error,
)
from moldau.streams.machine.extractors import (
    fail_on_invalid_timestamp,
    log_and_skip_on_invalid_timestamp,
    use_partition_time_on_invalid_timestamp,
    wall_clock_timestamp,
)
from moldau.streams.machine.wrappers import ProcessorWrapper, no_wrapper

_log = logging.getLogger(__name__)

COMMIT_INTERVAL_MS_EXACTLY_ONCE = 100
TRANSACTION_TIMEOUT_MS = 10_000

CONSUMER_PREFIXES = ("consumer.", "main.consumer.", "restore.consumer.", "global.consumer.")
_CLIENTS: dict[str, ConfigDef] = {
    **dict.fromkeys(CONSUMER_PREFIXES, CONSUMER_KEYS),
    "producer.": PRODUCER_KEYS,
    "admin.": ADMIN_KEYS,
}
_TOPIC = "topic."
#: Where an instance is: `client.tag.zone`.
CLIENT_TAG = "client.tag."
_TAG_NAME_MAX, _TAG_VALUE_MAX, _TAGS_MAX = 20, 30, 5
#: Of Kafka Streams itself, for tests: they go to the processors.
_INTERNAL = "__"
#: What the host decides, and a setting of a client must not.
_FIXED = {
    "consumer.": ("enable.auto.commit", "group.id", "partition.assignment.strategy"),
    "producer.": ("enable.idempotence", "transactional.id"),
}
_JAVA_HANDLERS: dict[str, Any] = {
    "LogAndFailExceptionHandler": fail_on_error,
    "LogAndFailProcessingExceptionHandler": fail_on_error,
    "DefaultProductionExceptionHandler": retry_if_retriable,
    "LogAndContinueExceptionHandler": skip_on_error,
    "LogAndContinueProcessingExceptionHandler": skip_on_error,
}


class StreamsSettings(Section, keys=STREAMS_KEYS):
    """Kafka's keys as the host uses them; `values` has all of them by Kafka's names."""

    values: Mapping[str, Any]
    given: Mapping[str, Any]
    application_id: str
    client_id: str
    application_server: str
    exactly_once: bool
    commit_interval_ms: int
    poll_ms: int
    num_stream_threads: int
    num_standby_replicas: int
    max_warmup_replicas: int
    acceptable_recovery_lag: int
    probing_rebalance_interval_ms: int
    max_task_idle_ms: int
    buffered_records_per_partition: int
    task_timeout_ms: int
    replication_factor: int | None
    additional_retention_ms: int
    repartition_purge_interval_ms: int
    state_dir: Path
    #: For all threads of the instance together.
    cache_max_bytes: int
    #: Whether `group.protocol` asks for a streams group (KIP-1071); `None` if it is not given.
    streams_group: bool | None
    timestamp_extractor: TimestampExtractor | None
    processor_wrapper: ProcessorWrapper
    handlers: Handlers
    #: For internal topics, from keys that begin with `topic.`.
    topic_configs: Mapping[str, str]

    def __repr__(self) -> str:
        # The values may hold passwords.
        return f"StreamsSettings({self.application_id!r})"

    @property
    def is_debug(self) -> bool:
        """Whether metrics of the level DEBUG are recorded."""
        return bool(self.values["metrics.recording.level"] != "INFO")

    @property
    def isolation_level(self) -> str:
        return "read_committed" if self.exactly_once else "read_uncommitted"

    def consumer(self, kind: str, **fixed: Any) -> dict[str, Any]:
        """The settings of the `main`, the `restore` or the `global` consumer."""
        return {
            "max.poll.records": 1000,
            **self._client("consumer.", f"{kind}.consumer."),
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
            "isolation.level": self.isolation_level,
            **{name.replace("_", "."): value for name, value in fixed.items()},
        }

    def producer(self, client_id: str, transactional_id: str | None) -> dict[str, Any]:
        """The settings of a thread's producer."""
        settings: dict[str, Any] = {"linger.ms": 100, **self._client("producer.")}
        settings["client.id"] = client_id
        if transactional_id is not None:
            settings.setdefault("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
            settings["transactional.id"] = transactional_id
        return settings

    def admin(self, client_id: str) -> dict[str, Any]:
        """The settings of the admin client."""
        return {**self._client("admin."), "client.id": client_id}

    def _client(self, *prefixes: str) -> dict[str, Any]:
        """What is given for a kind of client: without a prefix first, then by each prefix."""
        known = _CLIENTS[prefixes[0]]
        given = self.given
        found = {
            name: value
            for name, value in given.items()
            if is_provider_key(name)
            or (name in known and (name not in STREAMS_KEYS or name == "bootstrap.servers"))
        }
        for prefix in prefixes:
            for name, value in given.items():
                if name.startswith(prefix) and name.removeprefix(prefix) in known:
                    found[name.removeprefix(prefix)] = value
        return found


def streams_settings(
    config: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> StreamsSettings:
    """From what the application gave; raises ConfigError."""
    given = _gathered(config, keywords)
    own = {
        name: value
        for name, value in given.items()
        if name in STREAMS_KEYS or is_provider_key(name)
    }
    values = parse_settings(STREAMS_KEYS, own, no_effect=NO_EFFECT)
    _check(values, given)
    exactly_once = values["processing.guarantee"] == EXACTLY_ONCE
    interval_ms = values["commit.interval.ms"]
    if exactly_once and "commit.interval.ms" not in given:
        interval_ms = COMMIT_INTERVAL_MS_EXACTLY_ONCE
    replication_factor = values["replication.factor"]
    made = StreamsSettings.read(
        values.__getitem__,
        values=values,
        given=given,
        exactly_once=exactly_once,
        commit_interval_ms=interval_ms,
        replication_factor=None if replication_factor < 0 else replication_factor,
        additional_retention_ms=values["windowstore.changelog.additional.retention.ms"],
        state_dir=state_folder(values["state.dir"], values["application.id"]),
        cache_max_bytes=_cache_max_bytes(values, given),
        streams_group=(
            values["group.protocol"].lower() == "streams" if "group.protocol" in given else None
        ),
        timestamp_extractor=_extractor(values["default.timestamp.extractor"]),
        processor_wrapper=_wrapper(values["processor.wrapper.class"]),
        handlers=_handlers(values),
        topic_configs={
            name.removeprefix(_TOPIC): str(value)
            for name, value in given.items()
            if name.startswith(_TOPIC)
        },
    )
    if exactly_once:
        _check_exactly_once(made.producer("", ""), interval_ms)
    return made


def state_folder(state_dir: str | None, application_id: str) -> Path:
    """Where the instance of an application keeps its state."""
    if state_dir:
        return Path(state_dir) / application_id
    import tempfile

    return Path(tempfile.gettempdir()) / "kafka-streams" / application_id


def _gathered(config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Mapping and keyword arguments in one, by Kafka's names; unknown names are refused."""
    given = dict(config or {})
    by_field = _fields()
    for word, value in keywords.items():
        given[by_field.get(word) or _prefixed(word, by_field) or word] = value
    for name in given:
        if not _is_known(name):
            raise ConfigError(
                f"Unknown configuration {name}.{did_you_mean(name, STREAMS_KEYS)}", key=name
            )
    return {name: value for name, value in given.items() if value is not None}


def _fields() -> dict[str, str]:
    tables = (ADMIN_KEYS, PRODUCER_KEYS, CONSUMER_KEYS, STREAMS_KEYS)
    return {key.field: name for table in tables for name, key in table.items()}


def _prefixed(word: str, by_field: Mapping[str, str]) -> str | None:
    for prefix in _CLIENTS:
        start = prefix.replace(".", "_")
        if word.startswith(start) and (name := by_field.get(word.removeprefix(start))):
            return prefix + name
    if word.startswith("topic_"):
        return word.replace("_", ".")
    return None


def _is_known(name: str) -> bool:
    own = (_TOPIC, _INTERNAL, CLIENT_TAG)
    if name.startswith(own) or is_provider_key(name) or name in STREAMS_KEYS:
        return True
    for prefix, table in _CLIENTS.items():
        if name in table or (name.startswith(prefix) and name.removeprefix(prefix) in table):
            return True
    return False


def _check(values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    for name, advice in REFUSED.items():
        if values[name] != STREAMS_KEYS[name].default:
            raise ConfigError.invalid(name, values[name], advice)
    for prefix, names in _FIXED.items():
        for name in names:
            for each in (name, prefix + name):
                if each in given:
                    raise ConfigError(f"{each} is set by the application: remove it", key=each)
    _check_tags(values, given)
    if values["group.protocol"].lower() == "streams" and any(
        f"{prefix}group.instance.id" in given for prefix in ("", "consumer.", "main.consumer.")
    ):
        raise ConfigError(
            "Streams rebalance protocol does not support static membership. Please set "
            "group.protocol=classic or remove group.instance.id from the configuration.",
            key="group.instance.id",
        )
    server = values["application.server"]
    if server and not server.rpartition(":")[2].isdigit():
        raise ConfigError.invalid("application.server", server, "must have the form host:port")


def _check_tags(values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """The tags of this instance, and which of them are to differ between copies of a store."""
    tags = {
        name.removeprefix(CLIENT_TAG): str(value)
        for name, value in given.items()
        if name.startswith(CLIENT_TAG)
    }
    for tag, value in tags.items():
        name = CLIENT_TAG + tag
        if len(tag) > _TAG_NAME_MAX:
            said = f"Tag key exceeds maximum length of {_TAG_NAME_MAX}."
            raise ConfigError.invalid(name, tag, said)
        if not value:
            raise ConfigError.invalid(name, "[]", "Tag value cannot be empty.")
        if len(value) > _TAG_VALUE_MAX:
            said = f"Tag value exceeds maximum length of {_TAG_VALUE_MAX}."
            raise ConfigError.invalid(name, value, said)
    name = "rack.aware.assignment.tags"
    wanted = values[name]
    shown = f"[{', '.join(wanted)}]"
    if len(wanted) > _TAGS_MAX:
        raise ConfigError.invalid(name, shown, f"exceeds maximum list size of [{_TAGS_MAX}].")
    for tag in wanted:
        if tag not in tags:
            said = (
                f"Contains invalid value [{tag}] which doesn't have corresponding tag set via "
                f"[{CLIENT_TAG}] prefix."
            )
            raise ConfigError.invalid(name, shown, said)
    if tags:
        named = ", ".join(CLIENT_TAG + tag for tag in tags)
        _log.warning("These settings have no effect: %s", named)


def _check_exactly_once(producer: Mapping[str, Any], interval_ms: int) -> None:
    """What a producer's settings must be for transactions; raises ConfigError."""
    timeout_ms = int(producer["transaction.timeout.ms"])
    if timeout_ms < interval_ms:
        raise ConfigError(
            f"Transaction timeout {timeout_ms} was set lower than streams commit interval "
            f"{interval_ms}. This will cause ongoing transaction always timeout due to inactivity "
            f"caused by long commit interval. Consider reconfiguring commit interval to match "
            f"transaction timeout by tuning 'commit.interval.ms' config, or increase the "
            f"transaction timeout to match commit interval by tuning "
            f"`producer.transaction.timeout.ms` config.",
            key="commit.interval.ms",
        )
    name = "max.in.flight.requests.per.connection"
    if int(producer.get(name, 5)) > 5:
        raise ConfigError.invalid(
            name, producer[name], "Can't exceed 5 when exactly-once processing is enabled"
        )


def _cache_max_bytes(values: Mapping[str, Any], given: Mapping[str, Any]) -> int:
    """The newer name wins."""
    name = "statestore.cache.max.bytes"
    old = "cache.max.bytes.buffering"
    return int(values[old] if old in given and name not in given else values[name])


_JAVA_EXTRACTORS: dict[str, TimestampExtractor] = {
    "FailOnInvalidTimestamp": fail_on_invalid_timestamp,
    "LogAndSkipOnInvalidTimestamp": log_and_skip_on_invalid_timestamp,
    "UsePartitionTimeOnInvalidTimestamp": use_partition_time_on_invalid_timestamp,
    "WallclockTimestampExtractor": wall_clock_timestamp,
}


def _extractor(given: Any) -> TimestampExtractor | None:
    """What sources use that name none; without a setting the records' own times, as they are."""
    if given is None:
        return None
    if isinstance(given, str) and given.rpartition(".")[2] in _JAVA_EXTRACTORS:
        return _JAVA_EXTRACTORS[given.rpartition(".")[2]]
    return _resolved("default.timestamp.extractor", given)


def _wrapper(given: Any) -> ProcessorWrapper:
    return no_wrapper if given is None else _resolved("processor.wrapper.class", given)


def _handlers(values: Mapping[str, Any]) -> Handlers:
    def handler(
        name: str, old: str | None = None, default: Callable[..., Any] = fail_on_error
    ) -> Callable[..., Any]:
        found = values[name]
        if found is None and old is not None:
            found = values[old]
        return default if found is None else _resolved(name, found)

    return Handlers(
        deserialization=handler(
            "deserialization.exception.handler", "default.deserialization.exception.handler"
        ),
        processing=handler("processing.exception.handler"),
        production=handler(
            "production.exception.handler",
            "default.production.exception.handler",
            retry_if_retriable,
        ),
        dead_letter_topic=values["errors.dead.letter.queue.topic.name"],
    )


def _resolved(name: str, given: Any) -> Callable[..., Any]:
    """A function, the dotted path of one, or one of Kafka's handlers."""
    if isinstance(given, str):
        short = given.rpartition(".")[2]
        if short in _JAVA_HANDLERS:
            return _JAVA_HANDLERS[short]  # type: ignore[no-any-return]
        module, dot, attribute = given.rpartition(".")
        try:
            if not dot:
                raise ImportError(f"{given} has no module")
            given = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError.invalid(name, given, f"cannot be imported: {error}") from error
    if not callable(given):
        raise ConfigError.invalid(name, given, "must be a function, or the dotted path of one")
    return given  # type: ignore[no-any-return]
