"""Where the stream of changes continues.

The server sends whole transactions in the order of their commits, from the first that ended after a
given place of its log. An offset says which transaction was the last to be complete, and how many
records of the next one are known to be in Kafka, so that nothing is missing and nothing is doubled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    """`events` counts records of transaction `tx_id`, which begins after `lsn_commit`. `begun` says
    that the record of its begin was made, which is not one of these."""

    lsn_commit: int = 0
    lsn: int = 0
    tx_id: int | None = None
    events: int = 0
    ts_us: int = 0
    begun: bool = False

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Progress:
        return cls(
            int(offset.get("lsn_commit") or 0),
            int(offset.get("lsn") or 0),
            offset.get("txId"),
            int(offset.get("events") or 0),
            int(offset.get("ts_usec") or 0),
            bool(offset.get("begun")),
        )

    def offset(self) -> dict[str, Any]:
        return {
            "lsn_proc": self.lsn,
            "lsn_commit": self.lsn_commit,
            "lsn": self.lsn,
            "txId": self.tx_id,
            "events": self.events,
            "ts_usec": self.ts_us,
            **({"begun": True} if self.begun else {}),
        }

    def started(self, tx_id: int, ts_us: int) -> Progress:
        return replace(self, tx_id=tx_id, events=0, ts_us=ts_us, begun=False)

    def after_event(self, lsn: int) -> Progress:
        return replace(self, lsn=lsn, events=self.events + 1)

    def committed(self, end_lsn: int) -> Progress:
        return replace(self, lsn_commit=end_lsn, lsn=end_lsn, tx_id=None, events=0, begun=False)


def lsn_text(lsn: int) -> str:
    """A place of the log as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)
