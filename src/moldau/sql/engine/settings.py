"""Settings of the server, and what a session overrides, under ksqlDB's names."""

from __future__ import annotations

from collections.abc import Mapping
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
VARIABLES_ENABLED = "ksql.variable.substitution.enable"

_DEFAULTS: dict[str, Any] = {
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
        return self._values.get(name, _DEFAULTS.get(name))

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
