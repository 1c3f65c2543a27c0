"""`latest_value`: for a column of keys the latest value that a topic has for each.

Each of Spark's Python processes keeps the whole table and brings it up to date before it looks at
its part of a batch, so a row sees at least what had been committed when its batch began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

from moldau.spark.latest import ROWS_MAX, TOPIC

__all__ = ["latest_value"]


def latest_value(key: Any, topic: str, config: Mapping[str, str], *, rows_max: int) -> Any:
    """A binary column; null where the topic has no such key. `key` is binary."""
    settings = {**config, TOPIC: topic, ROWS_MAX: str(rows_max)}

    def look_up(keys: Iterator[pa.Array]) -> Iterator[pa.Array]:
        # Spark sends this function along: what it has from outside must be fit to be sent.
        from moldau.spark.latest import tables

        with tables.lease(settings) as table:
            table.catch_up()
            for each in keys:
                yield pa.array(table.values_of(each.to_pylist()), pa.binary())

    # Evaluated a second time, it might see a newer table.
    return arrow_udf(look_up, "binary").asNondeterministic()(key)
