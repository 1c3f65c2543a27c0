"""Counts the words of the topic `text` in the topic `counts`: python word_count.py [BOOTSTRAP]"""

from __future__ import annotations

import sys

from moldau.streams import KafkaStreams, StreamsBuilder, Topology


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("text", key_serde="string", value_serde="string")
        .flat_map_values(lambda line: line.lower().split())
        .group_by(lambda key, word: word, key_serde="string", value_serde="string")
        .count(store="counts")
        .to_stream()
        .to("counts", key_serde="string", value_serde="long")
    )
    return builder.build()


if __name__ == "__main__":
    bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
    KafkaStreams(build(), application_id="word-count", bootstrap_servers=bootstrap).run()
