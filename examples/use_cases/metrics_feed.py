"""Metrics feed: hosts report load and memory, and a dashboard shows them and who is in trouble.

Windows of ten seconds are summed up by a stream application; the dashboard queries its store. The
brokers' own dashboards are in deploy/monitoring (docs/metrics.md).
"""

import time

from stage import Stage

from moldau.streams import Materialized, StreamsBuilder, TimeWindows, Topology
from moldau.streams.errors import InvalidStateStoreError

ALARM = 90
HOUR = 3_600_000
BEGIN = int(time.time() - 3600) // 10 * 10_000


def add(host: str, sample: dict[str, int], total: dict[str, int]) -> dict[str, int]:
    return {
        "samples": total["samples"] + 1,
        "load": total["load"] + sample["load"],
        "highest": max(total["highest"], sample["load"]),
    }


def build() -> Topology:
    builder = StreamsBuilder()
    per_window = (
        builder.stream("host-metrics", key_serde="string", value_serde="json")
        .group_by_key()
        .windowed_by(TimeWindows(size=10_000, grace=5_000))
        .aggregate(
            lambda: {"samples": 0, "load": 0, "highest": 0},
            add,
            store=Materialized(name="load-per-host", value_serde="json", retention=2 * HOUR),
        )
    )
    (
        per_window.to_stream()
        .filter(lambda host, total: total["highest"] >= ALARM)
        .map(lambda host, total: (host.key, {"window": host.window.start, **total}))
        .to("alarms", key_serde="string", value_serde="json")
    )
    return builder.build()


def load_of(host: int, second: int) -> int:
    return 95 if host == 2 and 20 <= second < 30 else (host * 17 + second * 3) % 60


with Stage(__doc__) as stage:
    hosts, seconds = 4, 60 if stage.short else 600
    stage.topics("host-metrics", "alarms", partitions=2)
    running = stage.streams(build(), "metrics-feed")
    for host in range(hosts):
        stage.fact(f"host-{host}", lambda host=host: bar(host))

    def average(host: int, window: int) -> float | None:
        found = running.store("load-per-host").get(f"host-{host}", BEGIN + window * 10_000)
        return None if found is None else found[0]["load"] / found[0]["samples"]

    def bar(host: int) -> str:
        try:
            value = average(host, seconds // 10 - 1) or 0
        except InvalidStateStoreError:  # Its partition is being assigned.
            value = 0
        return f"{'█' * int(value // 4):<25} {value:5.1f} %"

    for second in range(seconds):
        for host in range(hosts):
            at = BEGIN + second * 1000
            sample = {"load": load_of(host, second), "memory": 40 + host}
            stage.send("host-metrics", f"host-{host}", sample, timestamp=at)
    stage.producer.flush()

    def expected(host: int, window: int) -> float:
        return sum(load_of(host, window * 10 + each) for each in range(10)) / 10

    everything = [(host, window) for host in range(hosts) for window in range(seconds // 10)]

    def right() -> bool:
        try:
            return all(average(*each) == expected(*each) for each in everything)
        except InvalidStateStoreError:
            return False

    stage.until(right, "the dashboard shows everything")
    stage.check(f"{len(everything)} windows have the right average", right())
    stage.until_records("alarms", 1)
    alarms = {(host, alarm["window"]) for host, alarm in stage.read("alarms")}
    stage.check("one alarm: host-2, in its third window", alarms == {("host-2", BEGIN + 20_000)})
