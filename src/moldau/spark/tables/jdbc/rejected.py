"""Rows that a database refuses: reported in an error, or sent to the dead-letter topic.

Dead letters are sent before the batch is committed: a crash in between sends them again, so they
are there at least once, and never lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.spark.tables.machine.options import Options

from ..errors import RejectedRowError

# More refused rows than this in one task mean that the table, not the rows, is wrong.
REJECTED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Rejected:
    row: str
    reason: str
    kind: str


class Refusals:
    """Collects refused rows, or raises at the first one if they are not wanted."""

    def __init__(self, options: Options) -> None:
        self._keep = options.text("onError") == "dead_letter"
        self._table = options.text("table")
        self.rows: list[Rejected] = []

    @property
    def keep(self) -> bool:
        return self._keep

    def add(self, row: str, reason: str, kind: str) -> None:
        if not self._keep:
            raise RejectedRowError(
                f"table {self._table} refuses the row {row}: {reason}",
                "Fix it in a step, or set onError: dead_letter to have such rows sent to the "
                "dead-letter topic",
            )
        if len(self.rows) >= REJECTED_MAX:
            raise RejectedRowError(
                f"table {self._table} refuses more than {REJECTED_MAX} rows of one batch, lastly "
                f"{row}: {reason}",
                "The steps and the table do not fit each other",
            )
        self.rows.append(Rejected(row, reason, kind))


def send_dead_letters(options: Options, rejected: Sequence[Rejected], batch_id: int) -> None:
    if not rejected:
        return
    from moldau.client import Producer
    from moldau.client.config import PRODUCER_KEYS, keys_of

    # A pipeline's Kafka settings are its consumers' too; those mean nothing to a producer.
    given = options.prefixed("kafka.")
    config = keys_of(PRODUCER_KEYS, given)
    topic = options.text("deadLetterTopic")
    with Producer(config) as producer:
        sent = [
            producer.send(
                topic,
                value=row.row.encode(),
                headers=[
                    ("__connect.errors.stage", b"TASK_PUT"),
                    ("__connect.errors.class.name", b"moldau.spark.tables.jdbc"),
                    ("__connect.errors.exception.class.name", row.kind.encode()),
                    ("__connect.errors.exception.message", row.reason.encode()),
                    ("__connect.errors.moldau.table", options.text("table").encode()),
                    ("__connect.errors.moldau.batch", str(batch_id).encode()),
                ],
            )
            for row in rejected
        ]
        for delivery in sent:
            delivery.result(60)
