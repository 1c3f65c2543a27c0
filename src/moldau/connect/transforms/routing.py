"""Filter, RegexRouter, TimestampRouter: whether a record goes on, and to which topic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectRecord,
    DataError,
    Importance,
    Kind,
    Transformation,
)
from moldau.connect.transforms.java_dates import DateFormat
from moldau.connect.transforms.java_patterns import JavaRegex, compiled, expand

R = TypeVar("R", bound=ConnectRecord)


class Filter(Transformation):
    """Drops every record; with a predicate, those that match."""

    def apply(self, record: R) -> R | None:
        return None


class RegexRouter(Transformation):
    CONFIG = (
        ConfigDef()
        .define(
            "regex",
            Kind.STRING,
            validator=JavaRegex(),
            importance=Importance.HIGH,
            doc="A regular expression that the whole topic name must match.",
        )
        .define(
            "replacement",
            Kind.STRING,
            importance=Importance.HIGH,
            doc="The new topic name; $1 stands for what the first group matched.",
        )
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        self._pattern: re.Pattern[str] = compiled("regex", settings["regex"])
        self._replacement: str = settings["replacement"]

    def apply(self, record: R) -> R | None:
        match = self._pattern.fullmatch(record.topic)
        if match is None:
            return record
        try:
            return record.new_record(topic=expand(match, self._replacement))
        except ValueError as error:
            raise DataError(f"replacement {self._replacement!r}: {error}") from None


class TimestampRouter(Transformation):
    CONFIG = (
        ConfigDef()
        .define(
            "topic.format",
            Kind.STRING,
            "${topic}-${timestamp}",
            importance=Importance.HIGH,
            doc="The new topic name, with ${topic} and ${timestamp} in it.",
        )
        .define(
            "timestamp.format",
            Kind.STRING,
            "yyyyMMdd",
            importance=Importance.HIGH,
            doc="A format of Java's SimpleDateFormat, for the timestamp in UTC.",
        )
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        self._topic_format: str = settings["topic.format"]
        try:
            self._format = DateFormat(settings["timestamp.format"])
        except ValueError as error:
            raise ConfigError.invalid(
                "timestamp.format", settings["timestamp.format"], str(error)
            ) from None

    def apply(self, record: R) -> R | None:
        if record.timestamp is None:
            raise DataError(f"Timestamp missing on record: {record}")
        topic = self._topic_format.replace("${topic}", record.topic)
        return record.new_record(
            topic=topic.replace("${timestamp}", self._format.format(record.timestamp))
        )
