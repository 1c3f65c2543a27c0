"""The options that Spark's topic sources and sinks are given for a definition.

They are named alike for both connectors. A definition's `kafka:` holds the settings of consumers
and producers in one place; each end gets those that it understands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from moldau.client.config import CONSUMER_KEYS, PRODUCER_KEYS, keys_of
from moldau.pipelines.definition.model import Topic
from moldau.spark.source.machine.limits import AUTO, LIMIT_MAX

# What is only about the definition.
_DEFINITION = frozenset({"allowloop"})
# What only our own source and sink know. Spark's connector would take it for a misspelt setting.
_OWN = frozenset({"groupid", "mirroroffsets", "exactlyonce", "targetbatchduration"})
_LIMIT = "maxOffsetsPerTrigger"
_TARGET = "targetBatchDuration"
# A batch of a backlog takes this long, or as long as its trigger's interval if that is longer.
_TARGET_MS = 5_000


def source_options(
    topic: Topic,
    kafka: Mapping[str, str],
    *,
    bootstrap: str,
    group: str,
    connector: str = "moldau",
    headers: bool = False,
    interval_ms: int = 0,
) -> dict[str, str]:
    """`interval_ms` is that of the trigger."""
    options = {
        "kafka.bootstrap.servers": bootstrap,
        **{f"kafka.{name}": value for name, value in kafka.items() if _is_for(name, CONSUMER_KEYS)},
    }
    if topic.assign is not None:
        options["assign"] = topic.assign
    elif topic.pattern is not None:
        options["subscribePattern"] = topic.pattern
    else:
        options["subscribe"] = ",".join([topic.topic] if topic.topic else topic.topics)
    given = {name: _text(value) for name, value in topic.settings.items()}
    lower = {name.lower() for name in given}
    if connector == "moldau" and not lower & {"groupid", "kafka.group.id", "groupidprefix"}:
        options["groupId"] = group
    if headers and "includeheaders" not in lower:
        options["includeHeaders"] = "true"
    return options | _for_connector(_limited(given, connector, interval_ms), connector)


def _limited(given: dict[str, str], connector: str, interval_ms: int) -> dict[str, str]:
    """With a limit for batches: a backlog becomes even batches, whatever its size.

    Our own source finds the limit; for Spark's connector it is the largest that ours would find.
    """
    names = {name.lower(): name for name in given}
    written = names.get(_LIMIT.lower())
    if written is not None and given[written].strip().lower() != AUTO:
        return given
    if connector != "moldau":
        return given | {written or _LIMIT: str(LIMIT_MAX)}
    if _TARGET.lower() not in names:
        given = given | {_TARGET: f"{max(interval_ms, _TARGET_MS)}ms"}
    return given | {written or _LIMIT: AUTO}


def sink_options(
    topic: Topic, kafka: Mapping[str, str], *, bootstrap: str, connector: str = "moldau"
) -> dict[str, str]:
    given = {
        name: _text(value)
        for name, value in topic.settings.items()
        if name.lower() not in _DEFINITION
    }
    return {
        "kafka.bootstrap.servers": bootstrap,
        **{f"kafka.{name}": value for name, value in kafka.items() if _is_for(name, PRODUCER_KEYS)},
        **_for_connector(given, connector),
    }


def producer_config(kafka: Mapping[str, str], *, bootstrap: str) -> dict[str, str]:
    """The settings of a producer of our own, beside Spark's."""
    return {
        "bootstrap.servers": bootstrap,
        **keys_of(PRODUCER_KEYS, kafka),
    }


def consumer_config(kafka: Mapping[str, str], *, bootstrap: str) -> dict[str, str]:
    """The settings of a consumer of our own, beside Spark's."""
    return {
        "bootstrap.servers": bootstrap,
        **keys_of(CONSUMER_KEYS, kafka),
    }


def _is_for(name: str, keys: frozenset[str] | Mapping[str, object]) -> bool:
    return name in keys or (name not in CONSUMER_KEYS and name not in PRODUCER_KEYS)


def _for_connector(given: Mapping[str, str], connector: str) -> dict[str, str]:
    if connector == "moldau":
        return dict(given)
    return {name: value for name, value in given.items() if name.lower() not in _OWN}


def _text(value: object) -> str:
    if isinstance(value, Mapping | list):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
