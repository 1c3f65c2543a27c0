"""Finds cards with more than three payments within five seconds.

Topics: `payments` by card, JSON; `suspicious-cards` gets the count of each such window, once it has
closed.
"""

from __future__ import annotations

from moldau.streams import StreamsBuilder, Suppressed, TimeWindows, Topology

PAYMENTS_MAX = 3


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("payments", key_serde="string", value_serde="json")
        .group_by_key()
        .windowed_by(TimeWindows(size=5_000, grace=1_000))
        .count(store="payments-per-card")
        .suppress(Suppressed.until_window_closes())
        .filter(lambda card, count: count > PAYMENTS_MAX)
        .to_stream()
        .map(lambda card, count: (card.key, count))
        .to("suspicious-cards", key_serde="string", value_serde="long")
    )
    return builder.build()
