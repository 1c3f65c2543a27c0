"""The settings of the Splunk sink, named and with defaults as Splunk Connect for Kafka has them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final

from moldau.connect.api import CheckedBy, ConfigDef, ConfigError, Importance, Kind, Range
from moldau.connect.connectors.http.login import check_url
from moldau.connect.connectors.splunk.machine.events import PARTS, EventRules, metas, pairs
from moldau.connect.connectors.support.web import define_connection

_LISTS: Final = {
    "index": "splunk.indexes",
    "source": "splunk.sources",
    "sourcetype": "splunk.sourcetypes",
}


def _check_urls(key: str, value: Any) -> None:
    if not value:
        raise ValueError("must have an address")
    for each in value:
        check_url(key, each)


def _check_pairs(key: str, value: Any) -> None:
    pairs(value)


def _define() -> ConfigDef:
    found = (
        define_connection(ConfigDef())
        .define("splunk.hec.uri", Kind.LIST, importance=Importance.HIGH,
                validator=CheckedBy(_check_urls, "URLs"), group="Splunk",
                doc="Addresses of the collector, which are asked in turn")
        .define("splunk.hec.token", Kind.PASSWORD, importance=Importance.HIGH, group="Splunk",
                doc="Its token")
        .define("splunk.hec.max.batch.size", Kind.INT, 500, validator=Range(1), group="Splunk",
                doc="How many events one request has")
    )  # fmt: skip
    for part, name in _LISTS.items():
        found.define(name, Kind.LIST, (), group="Splunk",
                     doc=f"The {part} of events: one for all, or one for each of topics, in their "
                     "order; empty: the token's own")  # fmt: skip
    found = (
        found.define("splunk.hec.raw", Kind.BOOLEAN, False, group="Splunk",
                     doc="Send values as they are to /services/collector/raw")
        .define("splunk.hec.raw.line.breaker", Kind.STRING, "", group="Splunk",
                doc="What follows each raw value; empty: a line feed")
        .define("splunk.hec.use.record.timestamp", Kind.BOOLEAN, True, group="Splunk",
                doc="Whether the time of an event is that of its record")
        .define("splunk.hec.auto.extract.timestamp", Kind.BOOLEAN, False, group="Splunk",
                doc="Whether Splunk looks for the time in the event")
        .define("splunk.hec.json.event.formatted", Kind.BOOLEAN, False, group="Splunk",
                doc="Whether values are events with metadata already")
        .define("splunk.hec.json.event.enrichment", Kind.STRING, "", group="Splunk",
                validator=CheckedBy(_check_pairs, "NAME=VALUE,..."),
                doc="Fields of all events: NAME=VALUE,...")
        .define("splunk.hec.track.data", Kind.BOOLEAN, False, group="Splunk",
                doc="Whether events have fields with the topic, partition, offset, timestamp and "
                "key of their record, and this host")
        .define("splunk.hec.enable.compression", Kind.BOOLEAN, False, group="Splunk",
                doc="Whether requests are compressed")
        .define("splunk.header.support", Kind.BOOLEAN, False, group="Headers",
                doc="Whether headers of records are metadata of events")
        .define("splunk.header.custom", Kind.LIST, (), group="Headers",
                doc="Headers that become fields of events")
    )  # fmt: skip
    for part in PARTS:
        found.define(f"splunk.header.{part}", Kind.STRING, f"splunk.header.{part}",
                     group="Headers", doc=f"The header with the {part} of an event")  # fmt: skip
    return (
        found.define("splunk.hec.ack.enabled", Kind.BOOLEAN, False, group="Acknowledgements",
                     doc="Whether offsets are committed after Splunk has indexed the events, which "
                     "the token must allow")
        .define("splunk.hec.ack.poll.interval", Kind.INT, 10, validator=Range(1),
                group="Acknowledgements", doc="How often Splunk is asked for that, in seconds")
        .define("splunk.hec.event.timeout", Kind.INT, 300, validator=Range(1),
                group="Acknowledgements",
                doc="After how many seconds events that are not indexed are sent again")
        .define("splunk.hec.max.outstanding.events", Kind.INT, 1_000_000, validator=Range(1),
                group="Acknowledgements", doc="How many events may wait to be indexed")
    )  # fmt: skip


CONFIG: Final = _define()


def event_rules(config: Mapping[str, Any], props: Mapping[str, str]) -> EventRules:
    topics = [each.strip() for each in props.get("topics", "").split(",") if each.strip()]
    try:
        by_topic = metas(topics, **{part: config[name] for part, name in _LISTS.items()})
    except ValueError as error:
        name = _LISTS[str(error)]
        raise ConfigError.invalid(
            name, ",".join(config[name]), "must be one, or as many as topics has"
        ) from None
    reads_headers = config["splunk.header.support"]
    return EventRules(
        metas=by_topic,
        batch_max=config["splunk.hec.max.batch.size"],
        raw=config["splunk.hec.raw"],
        line_breaker=config["splunk.hec.raw.line.breaker"] or "\n",
        record_time=config["splunk.hec.use.record.timestamp"],
        formatted=config["splunk.hec.json.event.formatted"],
        extract_time=config["splunk.hec.auto.extract.timestamp"],
        enrichment=pairs(config["splunk.hec.json.event.enrichment"]),
        tracked_by=socket.gethostname() if config["splunk.hec.track.data"] else None,
        headers={part: config[f"splunk.header.{part}"] for part in PARTS} if reads_headers else {},
        custom_headers=frozenset(config["splunk.header.custom"] if reads_headers else ()),
    )
