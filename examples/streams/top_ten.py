"""The ten songs that are played most, by a query of the running application.

    python top_ten.py [BOOTSTRAP]

Topic: `plays` by song. The store `plays-per-song` has the counts; no topic gets the result.
"""

from __future__ import annotations

import sys
import time

from moldau.streams import KafkaStreams, StreamsBuilder, Topology


def build() -> Topology:
    builder = StreamsBuilder()
    plays = builder.stream("plays", key_serde="string", value_serde="string")
    plays.group_by_key().count(store="plays-per-song")
    return builder.build()


def top(streams: KafkaStreams, count: int = 10) -> list[tuple[str, int]]:
    """The songs of this instance; with several instances, ask each and merge."""
    rows = [(song, found.value) for song, found in streams.store("plays-per-song").all()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:count]


if __name__ == "__main__":
    bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
    with KafkaStreams(build(), application_id="top-ten", bootstrap_servers=bootstrap) as running:
        while not running.wait(5):
            sys.stdout.write(f"{time.strftime('%H:%M:%S')} {top(running)}\n")
