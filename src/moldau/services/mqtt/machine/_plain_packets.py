# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""Finds plain packets in what a client has sent: those that nearly all traffic consists of.

A plain PUBLISH has QoS 0 or 1 and neither the retain flag nor properties, a plain PUBACK neither a
reason nor properties. Several of them in one read are found in one pass and handled together;
everything else, also whatever is wrong, is left to `decoding.py`.

Plain Python, and with `_plain_packets.pxd` beside it also the source of a compiled module with the
same names and results. Invariant: nothing is read beyond the end of the data.
"""

from __future__ import annotations

from types import SimpleNamespace

from moldau.services.mqtt.machine.packets import V5

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled

__all__ = ["COMPILED", "plain_packets", "pubacks"]

_V5 = V5


def plain_packets(
    data: bytes, version: int, size_max: int, count_max: int
) -> tuple[list[tuple[bytes, bytes, int, int]], list[int], int]:
    """The plain packets that the data begins with, at most `count_max`.

    Each message is its topic as it was sent, its payload, its packet identifier (0 with QoS 0) and
    where its packet ends; then the identifiers of the PUBACKs, and where the last packet ends.
    """
    view = data
    size = len(data)
    messages: list[tuple[bytes, bytes, int, int]] = []
    acknowledged: list[int] = []
    at = 0
    for _ in range(count_max):
        if size - at < 2:
            break
        first = view[at]
        length = view[at + 1]
        start = at + 2
        if first == 0x40:
            if length != 2 or size - at < 4:
                break
            packet_id = view[at + 2] << 8 | view[at + 3]
            if packet_id == 0:
                break
            acknowledged.append(packet_id)
            at += 4
            continue
        if first != 0x32 and first != 0x30 and first != 0x3A:
            break
        if length >= 0x80:
            # Two or three bytes; longer packets are rare, and lengths that are too long are wrong.
            if size - at < 3:
                break
            if view[at + 2] < 0x80:
                length = (length & 0x7F) | view[at + 2] << 7
                start = at + 3
                if length < 0x80:
                    break
            else:
                if size - at < 4 or view[at + 3] >= 0x80:
                    break
                length = (length & 0x7F) | (view[at + 2] & 0x7F) << 7 | view[at + 3] << 14
                start = at + 4
                if length < 0x4000:
                    break
        end = start + length
        if end > size or end - at > size_max or length < 2:
            break
        topic = start + 2
        after = topic + (view[start] << 8 | view[start + 1])
        if after == topic or after > end:
            break
        body = after
        packet_id = 0
        if first != 0x30:
            if body + 2 > end:
                break
            packet_id = view[body] << 8 | view[body + 1]
            if packet_id == 0:
                break
            body += 2
        if version == _V5:
            if body >= end or view[body] != 0:
                break
            body += 1
        messages.append((data[topic:after], data[body:end], packet_id, end))
        at = end
    return messages, acknowledged, at


def pubacks(packet_ids: list[int]) -> bytes:
    """A PUBACK without a reason for each."""
    out = bytearray(4 * len(packet_ids))
    view = out
    at = 0
    for packet_id in packet_ids:
        number = packet_id
        view[at] = 0x40
        view[at + 1] = 2
        view[at + 2] = number >> 8
        view[at + 3] = number & 0xFF
        at += 4
    return bytes(out)
