"""Where a transaction of the database begins and ends, and the place of each record in it.

With `provide.transaction.metadata` a transaction is a record BEGIN, its changes, each with its
number in the transaction and among those of its table, and a record END with the counts.
Tombstones are not counted.
"""

from __future__ import annotations

from typing import Final

from moldau.connect.connectors.capture.machine.envelope import TRANSACTION
from moldau.data import builders
from moldau.data.struct import Struct

_NAMES: Final = "io.debezium.connector.common.TransactionMetadata"
KEY_SCHEMA: Final = builders.struct({"id": builders.STRING}, name=f"{_NAMES}Key", version=1)
_COUNT: Final = builders.struct(
    {"data_collection": builders.STRING, "event_count": builders.INT64},
    name="event.collection",
    version=1,
    optional=True,
)
VALUE_SCHEMA: Final = builders.struct(
    {
        "status": builders.STRING,
        "id": builders.STRING,
        "event_count": builders.OPTIONAL_INT64,
        "data_collections": builders.array(_COUNT).as_optional(),
        "ts_ms": builders.INT64,
    },
    name=f"{_NAMES}Value",
    version=1,
)


class Transactions:
    """Counts from the beginning of a transaction, also where its records are known already."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def begin(self, tx_id: str, ts_ms: int) -> Struct:
        self._counts = {}
        return Struct.unchecked(VALUE_SCHEMA, ["BEGIN", tx_id, None, None, ts_ms])

    def change(self, tx_id: str, table: str) -> Struct:
        """The block `transaction` of a change of a table."""
        number = self._counts[table] = self._counts.get(table, 0) + 1
        return Struct.unchecked(TRANSACTION, [tx_id, sum(self._counts.values()), number])

    def end(self, tx_id: str, ts_ms: int) -> Struct:
        counts = [Struct.unchecked(_COUNT, list(each)) for each in self._counts.items()]
        total = sum(self._counts.values())
        return Struct.unchecked(VALUE_SCHEMA, ["END", tx_id, total, counts, ts_ms])
