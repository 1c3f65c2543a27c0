"""The commands of docs/schema-tools.md run as they are printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.serde.avro_files import write_avro_file
from moldau.testing import Broker
from support.processes import ROOT
from support.registry.stage import RegistryStage, registry_on

PAGE = (ROOT / "docs" / "schema-tools.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
ITEM = '{"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]}'
FIELDS = [{"name": "id", "type": "long"}]
MORE = [*FIELDS, {"name": "item", "type": ["null", "Item"], "default": None}]


def order(fields: list[dict[str, object]]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@pytest.fixture(scope="module")
def stage(broker: Broker) -> Iterator[RegistryStage]:
    with registry_on(broker.bootstrap_servers) as found:
        yield found


def run(command: str, folder: Path, url: str, typed: str = "") -> str:
    environment = {
        **os.environ,
        "MOLDAU_SCHEMA_REGISTRY": url,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-euc", command],
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tutorial(broker: Broker, stage: RegistryStage) -> None:
    url = stage.running.url
    first, second = (
        block.replace("localhost:9092", broker.bootstrap_servers).replace(
            "--topic users", f"--topic users --property schema.registry.url={url}"
        )
        for block in BLOCKS[:2]
    )
    run(first, ROOT, url, '"k1"\t{"name": "ada"}\n')
    producer, _, consumer = second.partition("\nbin/kafka-avro-console-consumer")
    run(producer, ROOT, url, '{"name": "bob", "age": 7}\n')
    consumer = f"bin/kafka-avro-console-consumer{consumer.rstrip()} --max-messages 2"
    shown = run(consumer, ROOT, url).splitlines()
    assert [line.split("\t")[:1] for line in shown] == [['"k1"'], ["null"]]
    assert '{"name":"ada"}' in shown[0]
    assert '{"name":"bob","age":7}' in shown[1]


def test_moldau_schemas(stage: RegistryStage, tmp_path: Path) -> None:
    url = stage.running.url
    for subject, text, references in (
        ("items", ITEM, []),
        ("orders-value", order(FIELDS), []),
        (
            "orders-value",
            order(MORE),
            [{"name": "Item", "subject": "items", "version": 1}],
        ),
    ):
        body = {"schema": text, "references": references}
        made = stage.client.ask("POST", f"/subjects/{subject}/versions", body)
        assert made.status == 200, made.text
    note = {"name": "note", "type": "string", "default": ""}
    (tmp_path / "order.avsc").write_text(order([*FIELDS, note]))
    (tmp_path / "rules.json").write_text('{"domainRules": []}')
    with (tmp_path / "orders.avro").open("wb") as file:
        write_avro_file(file, order(FIELDS), [{"id": 7}])
    shown = run(BLOCKS[2], tmp_path, url)
    assert "orders-value" in shown
    assert "is compatible with orders-value" in shown
    assert '{"id":7}' in shown
    assert "class Order:" in (tmp_path / "order.py").read_text()
