"""A pipeline that catches up with a long topic: speed, evenness of batches, memory, and the
estimate that it shows.

    python -m bench.backlog [--records 100000000] [--csv backlog.csv]

A topic of two partitions is filled with batches of 10,000 JSON records. A pipeline on Spark reads
all of it, exactly once, with default settings, and writes each thousandth record to a topic. Once a
second its progress and the memory of all its processes (the proportional set size, without the
broker) are noted.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import psutil

from bench.calls import Connection
from bench.deployments import Costs
from moldau.client import Admin, NewTopic, TopicPartition
from moldau.client.admin import OffsetSpec
from moldau.pipelines import Pipeline, Pipelines, Topic, daemon
from moldau.spark import ConnectServer
from moldau.testing import Broker
from moldau.wire.apis import ApiKey
from moldau.wire.compression import Compression
from moldau.wire.messages import ProduceRequest
from moldau.wire.records import encode_batch

INPUT, OUTPUT, NAME = "backlog-in", "backlog-out", "backlog"
PARTITIONS = 2
BATCH_RECORDS = 10_000
KEPT_ONE_IN = 1_000
RESULTS = Path(__file__).parent / "results" / "backlog.json"


@dataclass(frozen=True, slots=True)
class Sample:
    seconds: float
    batch: int
    rows: int
    batch_seconds: float
    lag: int
    done: float
    seconds_left: float
    memory_mb: float


def fill(port: int, records: int) -> None:
    """The same records again and again; the brokers give them their offsets."""
    now = int(time.time() * 1000)
    values = [json.dumps({"id": number, "amount": 1.5}).encode() for number in range(BATCH_RECORDS)]
    batch = encode_batch([(None, value, now, ()) for value in values], compression=Compression.LZ4)
    with Connection(port) as connection:
        for number in range(records // BATCH_RECORDS):
            data = ProduceRequest.PartitionProduceData(index=number % PARTITIONS, records=batch)
            topic = ProduceRequest.TopicProduceData(name=INPUT, partition_data=[data])
            request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic])
            answer = connection.call(ApiKey.PRODUCE, 9, request)
            code = answer.responses[0].partition_responses[0].error_code
            if code:
                raise RuntimeError(f"the broker refused a batch: error {code}")


def pipeline() -> Pipeline:
    return Pipeline(
        NAME,
        source=Topic(INPUT, schema="id BIGINT, amount DOUBLE", startingOffsets="earliest"),
        steps=[f"SELECT id FROM input WHERE id % {KEPT_ONE_IN} = 0"],
        sink=Topic(OUTPUT),
        engine="spark",
    )


@contextmanager
def deployment(folder: Path, bootstrap: str) -> Iterator[Pipelines]:
    server = ConnectServer(folder, connector="moldau")
    server.start()
    try:
        with Pipelines(bootstrap, folder=folder, timeout=600) as pipelines:
            yield pipelines
    finally:
        daemon.stop(folder, timeout=300)
        server.stop()


def watch(pipelines: Pipelines, costs: Costs, seconds_max: float) -> Iterator[Sample]:
    """Until nothing is left to read."""
    begun = time.monotonic()
    while (elapsed := time.monotonic() - begun) < seconds_max:
        info = pipelines.show(NAME)
        seen = info.progress
        if seen is not None and seen.input_rows:
            yield Sample(
                seconds=round(elapsed, 1),
                batch=seen.batch_id,
                rows=seen.input_rows,
                batch_seconds=seen.batch_seconds or 0.0,
                lag=seen.lag_records or 0,
                done=round(seen.backlog_done or 0.0, 4),
                seconds_left=round(seen.seconds_left or 0.0, 1),
                memory_mb=round(costs.memory_mb()),
            )
            if not seen.lag_records:
                return
        time.sleep(1.0)
    raise RuntimeError(f"it has not caught up within {seconds_max:.0f} s")


def written(bootstrap: str) -> int:
    """Records in the output, those of transactions' ends not counted."""
    from moldau.client import Consumer

    config = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed"}
    places = [TopicPartition(OUTPUT, number) for number in range(PARTITIONS)]
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        latest = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
    count = 0
    with Consumer(config | {"auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(places)
        while any(consumer.position(place) < latest[place].offset for place in places):
            count += len(list(consumer.poll(1.0)))
    return count


def figures(samples: Sequence[Sample], records: int) -> dict[str, float]:
    batches = list({each.batch: each for each in samples}.values())
    # The first ones find their size, the last one has the rest.
    steady = batches[len(batches) // 4 : -1] or batches
    seconds = [each.batch_seconds for each in steady]
    third = max(1, len(samples) // 3)
    middle = min(samples, key=lambda each: abs(each.done - 0.5))
    return {
        "records": records,
        "seconds": samples[-1].seconds,
        "records_per_second": round(records / samples[-1].seconds),
        "batches": samples[-1].batch + 1,
        "batch_seconds_p50": round(statistics.median(seconds), 1),
        "batch_seconds_max": max(seconds),
        "batch_rows_p50": statistics.median(each.rows for each in steady),
        "memory_mb_first_third": max(each.memory_mb for each in samples[:third]),
        "memory_mb_last_third": max(each.memory_mb for each in samples[-third:]),
        "half_done_after": middle.seconds,
        "estimate_then": middle.seconds_left,
        "it_took": round(samples[-1].seconds - middle.seconds, 1),
        "load": round(psutil.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.backlog")
    parser.add_argument("--records", type=int, default=100_000_000)
    parser.add_argument("--seconds-max", type=float, default=7_200.0)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    records = given.records // BATCH_RECORDS * BATCH_RECORDS
    with tempfile.TemporaryDirectory(prefix="bench-backlog-") as name, Broker() as broker:
        bootstrap = str(broker.bootstrap_servers)
        with Admin({"bootstrap.servers": bootstrap}) as admin:
            admin.create_topics([NewTopic(each, PARTITIONS, 1) for each in (INPUT, OUTPUT)])
        fill(int(bootstrap.rpartition(":")[2]), records)
        print(f"{records:,} records are there", flush=True)
        folder = Path(name, "spark")
        samples: list[Sample] = []
        with deployment(folder, bootstrap) as pipelines:
            pipelines.start(pipeline(), wait=False)
            for sample in watch(pipelines, Costs(folder), given.seconds_max):
                samples.append(sample)
                if len(samples) % 10 == 1:
                    print(sample, flush=True)
        count = written(bootstrap)
    if given.csv is not None:
        with given.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, [each.name for each in fields(Sample)])
            writer.writeheader()
            writer.writerows(asdict(each) for each in samples)
    made = figures(samples, records)
    for key, value in made.items():
        print(f"{key:24} {value:,}")
    wanted = records // KEPT_ONE_IN
    print(f"{count:,} of {wanted:,} records written")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(made, indent=2) + "\n")
    return 0 if count == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
