"""Results that change, written to a topic batch by batch.

Spark hands a Python sink no rows of a query in update mode; a function that is called with each
batch gets them. It writes the batch under the query's id and the batch's number, so a batch that
Spark repeats after a crash is written once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class TopicBatches:
    """An argument of `foreachBatch`; it is called in a Python process of the server."""

    def __init__(self, options: Mapping[str, str], checkpoint: str) -> None:
        self._options = dict(options)
        self._checkpoint = checkpoint
        self._query_id = ""

    def __call__(self, frame: Any, batch_id: int) -> None:
        writer = frame.write.format("moldau").mode("append").options(**self._options)
        if not self._at_least_once():
            query = self._query_of(frame.sparkSession)
            writer = writer.options(txnAppId=query, txnVersion=str(batch_id))
        writer.save()

    def _at_least_once(self) -> bool:
        named = {name.lower(): value for name, value in self._options.items()}
        return named.get("exactlyonce", "true").strip().lower() == "false"

    def _query_of(self, spark: Any) -> str:
        """The id in the checkpoint: a new checkpoint is a new query with new batch numbers."""
        if not self._query_id:
            lines = spark.read.text(f"{self._checkpoint}/metadata").collect()
            self._query_id = str(json.loads(lines[0][0])["id"])
        return self._query_id
