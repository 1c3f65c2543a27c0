"""What schema validation costs a broker: CPU per record with and without it, by codec.

python -m bench.schema_validation [--records 500000]
"""

from __future__ import annotations

import argparse
import struct
import time

import psutil

from moldau.client import Admin, NewTopic, Producer
from moldau.serde import Schema, SchemaRegistryClient
from moldau.testing import Broker
from moldau.wire._record_codec import Record, encode_records, validate_records
from moldau.wire._schema_ids import schema_ids


def walk_ns(records: int = 10_000, rounds: int = 30) -> tuple[float, float]:
    """Nanoseconds per record: the log's own validation, and collecting ids."""
    value = struct.pack(">bI", 0, 7) + b"x" * 95
    made = [Record(at, 0, b"key", value, ()) for at in range(records)]
    data = bytes(encode_records(made, 0, 0, 0)[0])
    # The buffer is longer than the records.
    end = len(data)
    while not schema_ids(data, 0, end, records, True, True).sound:
        end -= 1
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        started = time.perf_counter_ns()
        validate_records(data, 0, end, records, 0)
        middle = time.perf_counter_ns()
        schema_ids(data, 0, end, records, False, True)
        ended = time.perf_counter_ns()
        best = [min(best[0], middle - started), min(best[1], ended - middle)]
    return best[0] / records, best[1] / records


def produce(broker: Broker, topic: str, records: int, codec: str, value: bytes) -> float:
    """Microseconds of the broker's CPU per record."""
    process = psutil.Process(broker.nodes[1].pid)
    with Producer(
        bootstrap_servers=broker.bootstrap_servers,
        compression_type=codec,
        linger_ms=5,
        batch_size=65536,
        acks="1",
    ) as producer:
        producer.send(topic, value).result(30)
        before = process.cpu_times()
        for _ in range(records):
            producer.send(topic, value)
        producer.flush(120)
        after = process.cpu_times()
    spent = (after.user - before.user) + (after.system - before.system)
    return spent / records * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    records: int = parser.parse_args().records
    validated, collected = walk_ns()
    print(f"walk: validation of the log {validated:.1f} ns, ids {collected:.1f} ns per record")
    from support.ports import free_port
    from support.registry.stage import registry_on

    port = free_port()
    config = {"confluent.schema.registry.url": f"http://127.0.0.1:{port}"}
    with (
        Broker(config=config, log_level="ERROR") as broker,
        registry_on(broker.bootstrap_servers, listeners=f"http://127.0.0.1:{port}") as registry,
        SchemaRegistryClient(registry.running.url) as client,
        Admin(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        for codec in ("none", "lz4", "zstd"):
            results = {}
            for checked in (False, True):
                topic = f"{codec}-{checked}"
                configs = {"confluent.value.schema.validation": str(checked).lower()}
                admin.create_topics([NewTopic(topic, 1, 1, configs=configs)])
                schema_id = client.register(f"{topic}-value", Schema('"string"'))
                value = struct.pack(">bI", 0, schema_id) + b"x" * 95
                produce(broker, topic, 50_000, codec, value)
                results[checked] = min(
                    produce(broker, topic, records, codec, value) for _ in range(3)
                )
            print(
                f"{codec}: {results[False]:.3f} us of the broker's CPU per record without, "
                f"{results[True]:.3f} with validation"
            )


if __name__ == "__main__":
    main()
