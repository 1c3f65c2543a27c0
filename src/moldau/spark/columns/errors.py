"""What goes wrong between topics and columns, with the place in the topic or in the rows."""

from __future__ import annotations

__all__ = ["ColumnsError", "DataLossError", "OpenTransactionError", "RowError"]


class ColumnsError(Exception):
    """Any of them."""


class DataLossError(ColumnsError):
    """Records that were asked for are no longer, or not, in the log."""

    def __init__(
        self, topic: str, partition: int, wanted: tuple[int, int], available: tuple[int, int]
    ) -> None:
        super().__init__(topic, partition, wanted, available)
        self.topic = topic
        self.partition = partition
        #: From, and up to but not including: what was asked for, and what the log has.
        self.wanted = wanted
        self.available = available

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: offsets {self.wanted[0]} to {self.wanted[1]} were "
            f"asked for, but the log has {self.available[0]} to {self.available[1]}: records were "
            "deleted by retention, or the topic was deleted and created again; set failOnDataLoss "
            "to false to go on with what there is"
        )


class OpenTransactionError(ColumnsError):
    """A transaction below the end of the range did not end in time."""

    def __init__(
        self, topic: str, partition: int, last_stable_offset: int, end: int, waited_ms: int
    ) -> None:
        super().__init__(topic, partition, last_stable_offset, end, waited_ms)
        self.topic = topic
        self.partition = partition
        self.last_stable_offset = last_stable_offset
        self.end = end
        self.waited_ms = waited_ms

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: read_committed ends at offset "
            f"{self.last_stable_offset}, below the wanted {self.end}, and did so for "
            f"{self.waited_ms} ms: a transaction is open; find it with `moldau kafka-transactions "
            "find-hanging`, or raise default.api.timeout.ms"
        )


class RowError(ColumnsError):
    """A row cannot become a record, or its record was refused."""

    def __init__(self, problem: str, topic: str | None = None, row: int | None = None) -> None:
        super().__init__(problem, topic, row)
        self.problem = problem
        self.topic = topic
        #: Counted from 0 over all rows that the writer was given.
        self.row = row

    def __str__(self) -> str:
        where = "" if self.row is None else f"row {self.row}"
        if self.topic is not None:
            where += f"{' ' if where else ''}for topic {self.topic}"
        return f"{where}: {self.problem}" if where else self.problem
