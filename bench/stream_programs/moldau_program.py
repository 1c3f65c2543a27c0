"""The programs with `moldau.streams`; the arguments are those of the package."""

from __future__ import annotations

import sys
from typing import Any

from moldau.streams import JoinWindows, KafkaStreams, KStream, StreamsBuilder, TimeWindows

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}


def build(what: str, inputs: list[str], target: str) -> StreamsBuilder:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(inputs[0], **TEXT)
    match what:
        case "stateless":
            kept = stream.filter(lambda key, value: value is not None)
            kept.map_values(lambda value: value + "!").to(target, **TEXT)
        case "count":
            stream.group_by_key().count(store="counts").to_stream().to(target, value_serde="long")
        case "windowed":
            windowed = stream.group_by_key().windowed_by(TimeWindows(size=5_000, grace=1_000))
            windowed.count(store="counts").to_stream().to(target, value_serde="long")
        case "stream-table":
            table = builder.table(inputs[1], store="rows", **TEXT)
            stream.left_join(table, lambda one, two: one).to(target, **TEXT)
        case "stream-stream":
            other: KStream[str, str] = builder.stream(inputs[1], **TEXT)
            windows = JoinWindows(time_difference=50, grace=600_000)
            stream.join(other, lambda one, two: one, windows=windows).to(target, **TEXT)
    return builder


def main() -> None:
    bootstrap, sources, target, application_id, guarantee, what, store, folder = sys.argv[1:]
    KafkaStreams(
        build(what, sources.split(","), target).build(),
        application_id=application_id,
        bootstrap_servers=bootstrap,
        processing_guarantee=guarantee,
        commit_interval_ms=100,
        statestore_cache_max_bytes=0,
        default_dsl_store="in_memory" if store == "memory" else "rocksDB",
        state_dir=folder,
    ).run()


if __name__ == "__main__":
    main()
