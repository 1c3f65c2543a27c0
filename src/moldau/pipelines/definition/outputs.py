"""One of several sinks: a topic or a table, perhaps with SQL of its own over the last step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from moldau.pipelines.definition.model import Sink, Sql, Table, Topic
from moldau.pipelines.machine.sql_tokens import words_of

__all__ = ["Output", "ends_of", "outputs_of"]

_OF_SEVERAL_ROWS: Final = re.compile(
    r"group|having|order|sort|cluster|distribute|limit|offset|union|intersect|minus|join|distinct"
    r"|over|pivot|unpivot|window",
    re.IGNORECASE,
)
_AGGREGATES: Final = re.compile(
    r"count|sum|avg|mean|min|max|first|last|any_value|collect_list|collect_set|count_if|max_by"
    r"|min_by|approx_count_distinct|listagg|string_agg|array_agg|median|mode|stddev|variance",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Output:
    """A sink among several; `sql` is a SELECT over `input`, the result of the last step."""

    sink: Sink
    sql: str | None = None

    def to_json(self) -> dict[str, Any]:
        fields = self.sink.to_json()
        return fields if self.sql is None else {**fields, "sql": self.sql}

    @property
    def is_plain(self) -> bool:
        """Whether each row's result depends on that row alone."""
        words = words_of(self.sql or "")
        return not any(
            word.kind == "word"
            and (
                _OF_SEVERAL_ROWS.fullmatch(word.text)
                or (after.text == "(" and _AGGREGATES.fullmatch(word.text))
            )
            for word, after in pairwise(words)
        )

    def step(self) -> Sql | None:
        return None if self.sql is None else Sql(self.sql, place=self.sink.place)


def ends_of(sink: Sink | None, several: Mapping[str, Output]) -> dict[str, Sink]:
    """Every sink, by where it is in the definition: `sink`, or `sinks.NAME`."""
    single = {} if sink is None else {"sink": sink}
    return single | {f"sinks.{name}": one.sink for name, one in several.items()}


def outputs_of(given: Mapping[str, Output | Topic | Table] | None) -> dict[str, Output]:
    """Sinks may be given as they are."""
    return {
        str(name): one if isinstance(one, Output) else Output(one)
        for name, one in (given or {}).items()
    }
