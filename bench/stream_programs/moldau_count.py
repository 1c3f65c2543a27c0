"""Counts by key with `moldau.streams`: bootstrap, input, output, application id, guarantee."""

from __future__ import annotations

import sys
import tempfile

from moldau.streams import KafkaStreams, StreamsBuilder


def main() -> None:
    bootstrap, source, target, application_id, guarantee = sys.argv[1:]
    builder = StreamsBuilder()
    (
        builder.stream(source, key_serde="string", value_serde="string")
        .group_by_key()
        .count(store="counts")
        .to_stream()
        .to(target, key_serde="string", value_serde="long")
    )
    with tempfile.TemporaryDirectory() as folder:
        KafkaStreams(
            builder.build(),
            application_id=application_id,
            bootstrap_servers=bootstrap,
            processing_guarantee=guarantee,
            commit_interval_ms=100,
            statestore_cache_max_bytes=0,
            state_dir=folder,
        ).run()


if __name__ == "__main__":
    main()
