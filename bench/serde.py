"""What serializers cost: `python -m bench.serde [--records 30000]`.

moldau.serde and confluent-kafka's serializers in turns, with the same schema, the same value and
the same registry (Moldau's): microseconds of CPU per record, the best of some rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import schema_registry as theirs
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroReader
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroWriter
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from rich.console import Console
from rich.table import Table

from bench.services import store
from moldau import serde
from moldau.testing import Broker

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.registry.stage import registry_on

ROUNDS = 5
AIM = 3.0
TOPIC = "orders"
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": ["null", "string"], "default": None},
            {"name": "amount", "type": "double"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)
JSON = json.dumps(
    {
        "type": "object",
        "title": "Order",
        "properties": {
            "id": {"type": "integer"},
            "customer": {"type": ["string", "null"]},
            "amount": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id"],
    }
)
VALUE = {"id": 1, "customer": "ada", "amount": 1.5, "tags": ["a", "b"]}


@dataclass(frozen=True, slots=True)
class Compared:
    what: str
    ours_us: float
    theirs_us: float

    @property
    def ratio(self) -> float:
        return self.theirs_us / self.ours_us


@contextmanager
def registry_url() -> Iterator[str]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as stage:
        yield stage.running.url


def compare(
    what: str, ours: Callable[[], object], other: Callable[[], object], records: int
) -> Compared:
    best = [float("inf"), float("inf")]
    for work in (ours, other):
        for _ in range(1_000):
            work()
    for _ in range(ROUNDS):
        for place, work in enumerate((ours, other)):
            started = time.process_time()
            for _ in range(records):
                work()
            best[place] = min(best[place], (time.process_time() - started) / records * 1e6)
    return Compared(what, *best)


def measure(url: str, records: int) -> list[Compared]:
    registry = serde.SchemaRegistryClient(url)
    client = theirs.SchemaRegistryClient({"url": url})
    context = SerializationContext(TOPIC, MessageField.VALUE)
    found = []
    for name, writer, reader, their_writer, their_reader in (
        (
            "Avro",
            serde.AvroSerializer(AVRO, registry=registry),
            serde.AvroDeserializer(registry=registry),
            TheirAvroWriter(client, AVRO),
            TheirAvroReader(client),
        ),
        (
            "JSON Schema",
            serde.JsonSchemaSerializer(JSON, registry=registry),
            serde.JsonSchemaDeserializer(registry=registry),
            JSONSerializer(JSON, client, conf={"auto.register.schemas": True}),
            JSONDeserializer(None, schema_registry_client=client),
        ),
    ):
        topic = f"{TOPIC}-{name.replace(' ', '-')}"
        context = SerializationContext(topic, MessageField.VALUE)
        data = writer.serialize(topic, VALUE)
        found.append(
            compare(
                f"{name}: write",
                lambda w=writer, t=topic: w.serialize(t, VALUE),
                lambda w=their_writer, c=context: w(VALUE, c),
                records,
            )
        )
        found.append(
            compare(
                f"{name}: read",
                lambda r=reader, t=topic, d=data: r.deserialize(t, d, ()),
                lambda r=their_reader, c=context, d=data: r(d, c),
                records,
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.serde", description=__doc__)
    parser.add_argument("--records", type=int, default=30_000, help="per round")
    options = parser.parse_args()
    with registry_url() as url:
        rows = measure(url, options.records)
    table = Table(title="Serializers, CPU per record")
    for column in ("what", "Moldau us", "confluent-kafka us", "times as fast", "aim"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        table.add_row(
            row.what, f"{row.ours_us:.2f}", f"{row.theirs_us:.2f}", f"{row.ratio:.1f}", f">= {AIM}"
        )
    Console(width=100).print(table)
    store(
        "serde",
        [{"what": r.what, "ours_us": r.ours_us, "theirs_us": r.theirs_us} for r in rows],
    )


if __name__ == "__main__":
    main()
