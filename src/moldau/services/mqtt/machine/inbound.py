"""Inbound: what a client has published and the proxy has not acknowledged yet.

PUBACK and PUBREC leave in the order of the PUBLISH packets, whenever the broker acknowledges the
records. A QoS 2 message is pending from its PUBLISH until its PUBREL: with its identifier it is
stored before the record is sent, so that after a failure a repeated PUBLISH is recognised, and the
record is looked for in the log by its message id before it is sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.services.mqtt.machine.packets import PacketType
from moldau.services.mqtt.machine.reasons import MqttError, Reason

__all__ = ["Aliases", "Inbound", "Pending", "Receipt"]


class Receipt:
    """An acknowledgement that waits for the broker, or for those before it."""

    __slots__ = ("kind", "packet_id", "reason", "sent", "text")

    def __init__(self, kind: PacketType, packet_id: int, sent: Any = None) -> None:
        self.kind = kind
        self.packet_id = packet_id
        #: The future of the record, if it has no callback: check it before acknowledging.
        self.sent = sent
        #: None until it is known.
        self.reason: int | None = None
        self.text = ""


@dataclass(slots=True)
class Pending:
    """A QoS 2 message between PUBLISH and PUBREL. `certain` says that the record is in the log,
    `sending` that it is on its way; one that was read from the stored session is neither."""

    message_id: str
    since_ms: int
    topic: str
    certain: bool = False
    sending: bool = False
    receipt: Receipt | None = None
    """The PUBREC that waits for it."""


def _is_settled(receipt: Receipt) -> bool:
    return receipt.reason is not None


class Inbound:
    """See the module."""

    def __init__(self, receive_max: int) -> None:
        self.receive_max = receive_max
        self._receipts: deque[Receipt] = deque()
        self._pubacks = 0
        self.pending: dict[int, Pending] = {}

    @property
    def waiting(self) -> int:
        """How many acknowledgements have not been sent."""
        return len(self._receipts)

    @property
    def unfinished(self) -> int:
        """What counts against the receive maximum."""
        return self._pubacks + len(self.pending)

    def begin(self, kind: PacketType, packet_id: int) -> Receipt:
        receipt = Receipt(kind, packet_id)
        self._receipts.append(receipt)
        self._pubacks += kind == PacketType.PUBACK
        return receipt

    def begin_sent(self, packet_id: int, sent: Any) -> None:
        """A message with QoS 1 that is on its way already."""
        self._receipts.append(Receipt(PacketType.PUBACK, packet_id, sent))
        self._pubacks += 1

    @property
    def first(self) -> Receipt | None:
        """The acknowledgement that has to leave before all others."""
        return self._receipts[0] if self._receipts else None

    def ready(self, settle: Callable[[Receipt], bool] = _is_settled) -> list[Receipt]:
        """The acknowledgements that can leave now, in order: as long as `settle` is true of them,
        which may find out what became of the record."""
        found = []
        receipts = self._receipts
        while receipts and (receipts[0].reason is not None or settle(receipts[0])):
            receipt = receipts.popleft()
            self._pubacks -= receipt.kind == PacketType.PUBACK
            found.append(receipt)
        return found

    def abandon(self) -> None:
        """The connection is gone: what waits is not acknowledged on another one."""
        self._receipts.clear()
        self._pubacks = 0


class Aliases:
    """Topic aliases of one direction of one connection."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._topics: dict[int, str] = {}

    def resolve(self, topic: str, alias: int) -> str:
        """The topic that an alias stands for, from now on this one if it is given."""
        if not 1 <= alias <= self._count_max:
            raise MqttError(
                Reason.TOPIC_ALIAS_INVALID, f"topic aliases are 1 to {self._count_max}, not {alias}"
            )
        if topic:
            self._topics[alias] = topic
            return topic
        found = self._topics.get(alias)
        if found is None:
            raise MqttError(Reason.PROTOCOL_ERROR, f"the topic alias {alias} has no topic yet")
        return found
