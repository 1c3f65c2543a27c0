"""What clients have pushed (KIP-714), decoded: the newest values of each client instance.

Bounded: so many clients, and so many values of each. A push replaces the values that it names.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

from moldau.broker.machine.telemetry import Payload
from moldau.metrics.names import Kind, Spec
from moldau.metrics.otlp import decode_metrics
from moldau.metrics.registry import Reading
from moldau.wire.compression import Compression, decompress
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.uuids import uuid_to_text

CLIENTS_MAX: Final = 1_000
VALUES_MAX: Final = 1_000
DECODED_BYTES_MAX: Final = 4 * 1024 * 1024

#: How many of their values are on `/metrics`; `/clients` has all.
SHOWN_MAX: Final = 20_000
_LABEL_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")

_TAGS: Final = ("client_instance_id", "client_id", "client_software_name")


class ClientMetrics:
    """`receive` takes payloads; `shown` returns everything as JSON, `collect` as metrics."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._now_ms = now_ms
        # The one that pushed last is last.
        self._clients: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self.payload_count = 0

    def __len__(self) -> int:
        return len(self._clients)

    def receive(self, payload: Payload) -> None:
        """Keep the values of a push; ApiError if they cannot be read."""
        try:
            data = decompress(
                Compression(payload.compression_type), payload.metrics, DECODED_BYTES_MAX
            )
            points = decode_metrics(bytes(data))
        except Exception as error:
            raise ApiError(
                ErrorCode.INVALID_RECORD, f"client metrics cannot be read: {error}"
            ) from error
        self.payload_count += 1
        instance = uuid_to_text(payload.client_instance_id)
        known = self._clients.pop(instance, None) or {"values": {}}
        client = payload.client
        known |= {
            "client_instance_id": instance,
            "client_id": client.client_id,
            "client_software_name": client.software_name,
            "client_software_version": client.software_version,
            "client_source_address": client.source_address,
            "received_ms": self._now_ms(),
            "terminating": payload.terminating,
        }
        values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = known["values"]
        for point in points:
            key = point.name, tuple(sorted(point.tags.items()))
            if key in values or len(values) < VALUES_MAX:
                values[key] = point.value
        self._clients[instance] = known
        if len(self._clients) > CLIENTS_MAX:
            self._clients.popitem(last=False)

    def shown(self) -> list[dict[str, Any]]:
        """All clients with their values, as plain data."""
        return [
            {
                **client,
                "values": [
                    {"name": name, "tags": dict(tags), "value": value}
                    for (name, tags), value in client["values"].items()
                ],
            }
            for client in self._clients.values()
        ]

    def collect(self) -> Iterator[tuple[Spec, tuple[str, ...], Reading]]:
        """As metrics of this node, tagged with the client; no more than `SHOWN_MAX`.

        Names and tags are the client's own words. They are made such that they can neither be
        taken for the node's metrics nor spoil the page for all.
        """
        shown = 0
        for client in reversed(self._clients.values()):
            who = tuple(str(client[tag]) for tag in _TAGS)
            for (name, tags), value in client["values"].items():
                if shown >= SHOWN_MAX:
                    return
                shown += 1
                own: dict[str, str] = dict(zip(_TAGS, who, strict=True))
                for key, text in tags:
                    own.setdefault(_LABEL_UNSAFE.sub("_", f"_{key}" if key[:1].isdigit() else key)
                                   or "_", text)  # fmt: skip
                rest = name.removeprefix("org.apache.kafka.")
                spec = Spec("kafka", "client", rest, Kind.GAUGE, "pushed by a client", tuple(own))
                yield spec, tuple(own.values()), value
