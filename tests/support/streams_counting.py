"""A word count as a process that tests kill, and what its topics must hold in the end.

With `WITH_JOIN` the process also runs the windowed join of `support.streams_joining`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from moldau.client import Consumer, TopicPartition
from moldau.streams import KafkaStreams, StreamsBuilder, Topology
from support.streams_joining import add_windowed_join
from support.waiting import eventually

INPUT, OUTPUT = "text", "counts"
WITH_JOIN = "--with-join"


def word_count(prefix: str, *, with_join: bool = False) -> Topology:
    """Reads `<prefix>text`, writes the count of each word to `<prefix>counts`."""
    builder = StreamsBuilder()
    (
        builder.stream(prefix + INPUT, key_serde="string", value_serde="string")
        .flat_map_values(lambda line: line.split())
        .group_by(lambda key, word: word, key_serde="string", value_serde="string")
        .count(store="counts")
        .to_stream()
        .to(prefix + OUTPUT, key_serde="string", value_serde="long")
    )
    if with_join:
        add_windowed_join(builder, prefix)
    return builder.build()


class Instance:
    """A process that runs the word count."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, *settings: str) -> None:
        self._command = [sys.executable, "-m", "support.streams_counting"]
        self._command += [bootstrap, prefix, str(folder), *settings]
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Instance:
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, cwd=Path(__file__).parents[1], stdout=output, stderr=output
            )
        return self

    def kill(self) -> None:
        """SIGKILL: nothing is committed, closed or said."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """SIGTERM: it commits and leaves. The exit code."""
        if self._process is None:
            return 0
        self._process.terminate()
        code = self._process.wait(60)
        self._process = None
        return code

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def output(self) -> str:
        return self._log.read_text(errors="replace")


def recomputed(lines: Iterable[str]) -> dict[str, int]:
    return dict(Counter(word for line in lines for word in line.split()))


def updates(bootstrap: str, topic: str, partitions: int, total: int) -> dict[str, list[int]]:
    """All committed counts of each word, in their order, once there are `total` words."""
    found: dict[str, list[int]] = {}
    with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([TopicPartition(topic, index) for index in range(partitions)])

        def complete() -> bool:
            for record in consumer.poll(0.5):
                found.setdefault(record.key.decode(), []).append(int.from_bytes(record.value))
            return sum(counts[-1] for counts in found.values()) >= total

        eventually(complete, what=f"{total} words are counted in {topic}", seconds_max=120)
        for record in consumer.poll(0.5):
            found.setdefault(record.key.decode(), []).append(int.from_bytes(record.value))
    return found


def check(found: Mapping[str, list[int]], expected: Mapping[str, int]) -> None:
    """The last count of each word is right, and no count was written twice or went back."""
    assert {word: counts[-1] for word, counts in found.items()} == dict(expected)
    for word, counts in found.items():
        assert counts == sorted(set(counts)), word


def main(bootstrap: str, prefix: str, folder: str, *settings: str) -> None:
    pairs = [each for each in settings if each != WITH_JOIN]
    given: dict[str, Any] = dict(each.split("=", 1) for each in pairs)
    made = KafkaStreams(
        word_count(prefix, with_join=WITH_JOIN in settings),
        given,
        application_id=f"{prefix}app",
        bootstrap_servers=bootstrap,
        state_dir=folder,
    )
    made.run()


if __name__ == "__main__":
    import logging

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")
    main(*sys.argv[1:])
