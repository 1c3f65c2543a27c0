"""Settings of the server, and what a session overrides, under ksqlDB's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

SERVICE_ID = "ksql.service.id"
DEFAULT_KEY_FORMAT = "ksql.persistence.default.format.key"
DEFAULT_VALUE_FORMAT = "ksql.persistence.default.format.value"
WRAP_SINGLE_VALUES = "ksql.persistence.wrap.single.values"
TOPIC_PREFIX = "ksql.output.topic.name.prefix"
QUERY_PREFIX = "ksql.persistent.prefix"
NEW_PLANNER_ENABLED = "ksql.new.query.planner.enabled"
SUPPRESS_ENABLED = "ksql.suppress.enabled"
TIMESTAMP_THROWS = "ksql.timestamp.throw.on.invalid"
SOURCE_TABLES_ENABLED = "ksql.source.table.materialization.enabled"
HEADERS_ENABLED = "ksql.headers.columns.enabled"
TABLE_SCAN_ENABLED = "ksql.query.pull.table.scan.enabled"
RANGE_SCAN_ENABLED = "ksql.query.pull.range.scan.enabled"
PULL_LIMIT_ENABLED = "ksql.query.pull.limit.clause.enabled"
HIDDEN_TOPICS = "ksql.hidden.topics"
READ_ONLY_TOPICS = "ksql.readonly.topics"
VARIABLES_ENABLED = "ksql.variable.substitution.enable"

#: Topics of Kafka, of the registry, of Connect, and of this server: its commands among them.
_INTERNAL = (
    "_confluent.*,__confluent.*,_schemas,__consumer_offsets,__transaction_state,"
    "connect-configs,connect-offsets,connect-status,connect-statuses"
)
_DEFAULTS: dict[str, Any] = {
    HIDDEN_TOPICS: _INTERNAL,
    READ_ONLY_TOPICS: _INTERNAL,
    SERVICE_ID: "default_",
    DEFAULT_KEY_FORMAT: "KAFKA",
    DEFAULT_VALUE_FORMAT: None,
    WRAP_SINGLE_VALUES: None,
    TOPIC_PREFIX: "",
    QUERY_PREFIX: "query_",
    NEW_PLANNER_ENABLED: False,
    SUPPRESS_ENABLED: True,
    TIMESTAMP_THROWS: False,
    SOURCE_TABLES_ENABLED: True,
    HEADERS_ENABLED: True,
    TABLE_SCAN_ENABLED: True,
    RANGE_SCAN_ENABLED: True,
    PULL_LIMIT_ENABLED: True,
    VARIABLES_ENABLED: True,
}


class Settings:
    """Values by name. `with_overrides` is what a statement sees."""

    def __init__(
        self, values: Mapping[str, Any] | None = None, overrides: Mapping[str, Any] | None = None
    ) -> None:
        self._values = dict(values or {})
        #: What a session has set.
        self.overrides = dict(overrides or {})

    @property
    def values(self) -> dict[str, Any]:
        return dict(self._values)

    def with_overrides(self, overrides: Mapping[str, Any]) -> Settings:
        if not overrides:
            return self
        return Settings({**self._values, **overrides}, {**self.overrides, **overrides})

    def get(self, name: str) -> Any:
        value = self._values.get(name)
        return _DEFAULTS.get(name) if value is None else value

    def text(self, name: str) -> str:
        value = self.get(name)
        return "" if value is None else str(value)

    def optional_flag(self, name: str) -> bool | None:
        value = self.get(name)
        if value is None or value == "":
            return None
        return value if isinstance(value, bool) else str(value).strip().lower() == "true"

    def flag(self, name: str) -> bool:
        return bool(self.optional_flag(name))

    def is_hidden(self, topic: str) -> bool:
        """Whether SHOW TOPICS leaves a topic out."""
        return any(each.fullmatch(topic) for each in _patterns(self.text(HIDDEN_TOPICS)))

    def is_read_only(self, topic: str) -> bool:
        """Whether statements may not write to a topic, nor delete it."""
        return any(each.fullmatch(topic) for each in _patterns(self.text(READ_ONLY_TOPICS)))


@lru_cache(maxsize=32)
def _patterns(texts: str) -> tuple[re.Pattern[str], ...]:
    found = []
    for each in filter(None, (text.strip() for text in texts.split(","))):
        try:
            found.append(re.compile(each))
        except re.error:
            found.append(re.compile(re.escape(each)))
    return tuple(found)
