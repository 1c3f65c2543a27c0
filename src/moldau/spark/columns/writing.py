"""The rows of Arrow batches as records of topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow

from moldau.client.producer import Producer
from moldau.spark.columns.errors import RowError

__all__ = ["ColumnWriter", "Prepared"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A transaction that holds everything and waits for its end, by whoever may end it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    record_count: int
    #: The sum, modulo 2^64, of a checksum of every record: topic, key, value and headers.
    digest: int
    #: EndTxn goes in version 5 for 2 (KIP-890), in version 4 or less before.
    transaction_version: int = 1


class ColumnWriter:
    """Produces rows. One thread uses it."""

    def __init__(
        self,
        config: Mapping[str, str],
        *,
        transactional_id: str | None = None,
        default_topic: str | None = None,
    ) -> None:
        self._transactional_id = transactional_id
        self._default_topic = default_topic
        self.record_count = 0
        self.digest = 0
        self._prepared = False
        self._errors: list[RowError] = []
        settings: dict[str, Any] = dict(config)
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        self._producer = Producer(settings)
        if transactional_id is not None:
            try:
                self._producer.init_transactions()
                self._producer.begin_transaction()
            except BaseException:
                self._producer.close(0)
                raise

    def write(self, batch: pyarrow.RecordBatch) -> None:
        """Take on the rows; blocks while `buffer.memory` is full. Raises what failed before."""
        for row in batch.to_pylist():
            self._send(row)
        self._raise_first()

    def _send(self, row: Mapping[str, Any]) -> None:
        number = self.record_count
        topic = row.get("topic") or self._default_topic
        if topic is None:
            raise RowError("there is no topic: give the option topic or a column topic", row=number)
        key, value = _as_bytes(row.get("key")), _as_bytes(row["value"])
        headers = [(each["key"], each["value"]) for each in row.get("headers") or ()]
        timestamp = row.get("timestamp")

        def done(_: object, error: Exception | None) -> None:
            if error is not None:
                self._errors.append(RowError(str(error), topic, number))

        self._producer.send(
            topic,
            value,
            key,
            row.get("partition"),
            None if timestamp is None else int(timestamp.timestamp() * 1000),
            headers,
            done,
        )
        self.record_count += 1
        self.digest = (self.digest + hash((topic, key, value))) & (2**64 - 1)

    def _raise_first(self) -> None:
        if self._errors:
            raise self._errors[0]

    def flush(self) -> None:
        """Until every row is acknowledged; raises what failed."""
        self._producer.flush()
        self._raise_first()

    def prepared(self) -> Prepared:
        """Flush, and leave the transaction open for somebody else to end."""
        if self._transactional_id is None:
            raise RowError("only a writer with a transactional id prepares a transaction")
        self.flush()
        manager = self._producer._core.transactions
        assert manager is not None
        self._prepared = True
        self._producer._core.keeps_transaction = True
        return Prepared(
            self._transactional_id,
            manager.producer_id.producer_id,
            manager.producer_id.epoch,
            self.record_count,
            self.digest,
            2 if manager.is_v2 else 1,
        )

    def abort(self) -> None:
        """Abort the transaction, also a prepared one."""
        self._prepared = False
        self._producer._core.keeps_transaction = False
        if self._transactional_id is not None:
            self._producer.abort_transaction()

    def close(self) -> None:
        """Let go of everything; a transaction that is not prepared is aborted."""
        self._producer.close()


def _as_bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
