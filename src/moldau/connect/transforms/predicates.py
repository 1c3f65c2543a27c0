"""HasHeaderKey, RecordIsTombstone, TopicNameMatches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.connect.api import ConfigDef, ConnectRecord, Importance, Kind, NonEmpty, Predicate
from moldau.connect.transforms.java_patterns import JavaRegex, compiled


class HasHeaderKey(Predicate):
    CONFIG = ConfigDef().define(
        "name",
        Kind.STRING,
        validator=NonEmpty(),
        importance=Importance.MEDIUM,
        doc="The name of the header.",
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._name = self.CONFIG.parse(configs)["name"]

    def test(self, record: ConnectRecord) -> bool:
        return any(each.key == self._name for each in record.headers)


class RecordIsTombstone(Predicate):
    def test(self, record: ConnectRecord) -> bool:
        return record.value is None


class TopicNameMatches(Predicate):
    CONFIG = ConfigDef().define(
        "pattern",
        Kind.STRING,
        validator=JavaRegex(non_empty=True),
        importance=Importance.MEDIUM,
        doc="A regular expression that the whole topic name must match.",
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._pattern = compiled("pattern", self.CONFIG.parse(configs)["pattern"])

    def test(self, record: ConnectRecord) -> bool:
        # A record of a connector's own making may come without topic.
        return record.topic is not None and self._pattern.fullmatch(record.topic) is not None
