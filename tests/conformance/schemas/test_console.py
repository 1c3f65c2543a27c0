"""The console tools with schemas, and `moldau schemas`, on a real broker and registry.

The tutorial is the one of Confluent's documentation: key and value schemas, then a second version
of the value's schema with a default.
"""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Consumer
from moldau.serde.avro_files import AvroFile, write_avro_file
from moldau.testing import Broker
from support.cli import Ended, moldau_cli, moldau_console
from support.processes import ROOT
from support.registry.stage import RegistryStage, registry_on

USER = '{"type":"record","name":"user","fields":[{"name":"name","type":"string"}]}'
USER_2 = (
    '{"type":"record","name":"user","fields":[{"name":"name","type":"string"},'
    '{"name":"age","type":"int","default":-1}]}'
)
PROTO = 'syntax = "proto3"; message Reading { string sensorName = 1; int64 at = 2; double x = 3; }'
JSON_SCHEMA = '{"type":"object","properties":{"f1":{"type":"string"}},"required":["f1"]}'


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[RegistryStage]:
    with registry_on(broker.bootstrap_servers) as found:
        yield found


class Tools:
    def __init__(self, broker: Broker, registry: RegistryStage) -> None:
        self.servers = broker.bootstrap_servers
        self.url = registry.running.url

    def run(self, tool: str, *words: str, typed: str = "") -> Ended:
        return moldau_console(
            tool,
            "--bootstrap-server",
            self.servers,
            "--property",
            f"schema.registry.url={self.url}",
            *words,
            typed=typed,
        )

    def produce(self, tool: str, *words: str, typed: str) -> None:
        ended = self.run(tool, *words, typed=typed)
        assert (ended.status, ended.out) == (0, ""), ended

    def consume(self, tool: str, topic: str, count: int, *properties: str) -> list[str]:
        words = [word for each in properties for word in ("--property", each)]
        ended = self.run(
            tool, "--topic", topic, "--from-beginning", "--max-messages", str(count), *words
        )
        assert ended.status == 0, ended
        return ended.lines


@pytest.fixture
def tools(broker: Broker, registry: RegistryStage) -> Tools:
    return Tools(broker, registry)


def test_the_classic_tutorial(tools: Tools, registry: RegistryStage) -> None:
    tools.produce(
        "avro-console-producer",
        "--topic",
        "tutorial",
        "--property",
        "parse.key=true",
        "--property",
        'key.schema={"type":"string"}',
        "--property",
        f"value.schema={USER}",
        typed='"k1"\t{"name": "ada"}\n"k2"\t{"name": "bob"}\n',
    )
    tools.produce(
        "avro-console-producer",
        "--topic",
        "tutorial",
        "--property",
        "parse.key=true",
        "--property",
        "key.separator=:",
        "--property",
        "key.serializer=org.apache.kafka.common.serialization.StringSerializer",
        "--property",
        f"value.schema={USER_2}",
        typed='k3:{"name": "cyd", "age": 36}\n',
    )
    lines = tools.consume("avro-console-consumer", "tutorial", 3, "print.schema.ids=true")
    assert sorted(lines) == [
        '{"name":"ada"}\t2',
        '{"name":"bob"}\t2',
        '{"name":"cyd","age":36}\t3',
    ]
    subjects = registry.client.ask("GET", "/subjects").json
    assert {"tutorial-key", "tutorial-value"} <= set(subjects)
    assert registry.client.ask("GET", "/subjects/tutorial-value/versions").json == [1, 2]


def test_keys_ids_and_other_parts_are_printed_in_confluents_order(tools: Tools) -> None:
    tools.produce(
        "avro-console-producer",
        "--topic",
        "parts",
        *("--property", "parse.key=true", "--property", "parse.headers=true"),
        *("--property", "key.separator=|", "--property", 'key.schema="string"'),
        *("--property", 'value.schema="string"'),
        typed='h:1\t"k"|"v"\n',
    )
    (line,) = tools.consume(
        "avro-console-consumer",
        "parts",
        1,
        *(f"print.{each}=true" for each in ("partition", "offset", "headers", "key")),
        "key.separator= ",
    )
    assert line == 'Partition:0 Offset:0 h:1 "k" "v"'


@pytest.mark.parametrize(
    ("word", "schema", "typed", "shown"),
    [
        ("json-schema", JSON_SCHEMA, '{"f1": "v"}', '{"f1":"v"}'),
        (
            "protobuf",
            PROTO,
            '{"sensorName": "t", "at": 5}',
            '{"sensorName":"t","at":"5","x":0.0}',
        ),
    ],
)
def test_the_twins(tools: Tools, word: str, schema: str, typed: str, shown: str) -> None:
    topic = f"twins-{word}"
    arguments = ("--topic", topic, "--property", f"value.schema={schema}")
    tools.produce(f"{word}-console-producer", *arguments, typed=f"{typed}\n")
    assert tools.consume(f"{word}-console-consumer", topic, 1) == [shown]


@pytest.mark.parametrize(
    ("word", "words", "typed", "reason"),
    [
        ("avro", ["value.schema=" + USER], '{"nam": 1}', "Expected field name not found: name"),
        ("avro", ["value.schema=" + USER], "not json", "is not JSON"),
        ("avro", [], "{}", "Must provide the value schema in either value.schema"),
        ("avro", ["value.schema={"], "{}", "schema"),
        ("avro", ["value.schema.id=999999"], "{}", "40403"),
        ("json-schema", ["value.schema=" + JSON_SCHEMA], "{}", '"f1" is a required property'),
        ("protobuf", ["value.schema=" + PROTO], '{"nope": 1}', 'no field named "nope"'),
    ],
)
def test_what_is_wrong_is_one_line(
    tools: Tools, word: str, words: list[str], typed: str, reason: str
) -> None:
    properties = [part for each in words for part in ("--property", each)]
    tool = f"{word}-console-producer"
    ended = tools.run(tool, "--topic", f"refused-{word}", *properties, typed=f"{typed}\n")
    assert ended.status == 1
    lines = [each for each in ended.err.splitlines() if "deprecated" not in each.lower()]
    assert len(lines) == 1, ended.err
    assert reason in lines[0]


def test_the_scripts_and_the_old_names_of_options(tools: Tools, broker: Broker) -> None:
    done = subprocess.run(
        [
            str(ROOT / "bin" / "kafka-avro-console-producer"),
            *("--broker-list", tools.servers, "--topic", "script"),
            *("--property", f"schema.registry.url={tools.url}"),
            *("--property", f"value.schema={USER}"),
        ],
        input=b'{"name": "ada"}\n',
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with Consumer(bootstrap_servers=tools.servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([("script", 0)])
        (record,) = consumer.poll(30.0)
    assert bytes(record.value or b"")[5:] == b"\x06ada"


def test_moldau_schemas(tools: Tools, tmp_path: Path) -> None:
    def schemas(*words: str) -> Ended:
        return moldau_cli("schemas", *words, "--registry", tools.url)

    first, second, wrong = (tmp_path / f"{each}.avsc" for each in ("a", "b", "c"))
    first.write_text(USER)
    second.write_text(USER_2)
    wrong.write_text(USER.replace('"string"', '"int"'))
    subject = "command-value"
    assert "version 1 has id" in schemas("register", subject, str(first)).out
    assert "is compatible" in schemas("check", subject, str(second)).out
    refused = schemas("check", subject, str(wrong))
    assert refused.status == 1
    assert "is not compatible" in refused.err
    assert "TYPE_MISMATCH" in refused.out
    assert "version 2 has id" in schemas("register", subject, str(second)).out
    assert [line.split()[:3] for line in schemas("list", subject).lines[1:]] == [
        [subject, "1-2", "AVRO"]
    ]
    shown = schemas("show", subject, "--json").json
    assert shown["version"] == 2
    assert json.loads(schemas("show", subject, "--version", "1").out) == json.loads(USER)
    diff = schemas("diff", subject).out
    assert '+      "name": "age",' in diff
    assert "deleted command-value version 2 softly" in (
        schemas("delete", subject, "--version", "2").out
    )
    assert "version 1 softly" in schemas("delete", subject).out
    assert "for good" in schemas("delete", subject, "--permanent").out
    gone = schemas("show", subject)
    assert gone.status == 1
    assert "40401" in gone.err


def test_container_files(tmp_path: Path) -> None:
    schema = USER_2.replace('"int"', '["null","int"]').replace("-1", "null")
    path = tmp_path / "users.avro"
    records = [{"name": "ada", "age": 36}, {"name": "bob", "age": None}] * 1000
    for codec in ("null", "deflate", "bzip2", "xz", "snappy"):
        with path.open("wb") as file:
            write_avro_file(file, schema, records, codec=codec)
        with path.open("rb") as file:
            found = AvroFile(file)
            assert found.codec == codec
            assert list(found) == records
    shown = moldau_cli("schemas", "cat", str(path)).lines
    assert shown[:2] == ['{"name":"ada","age":{"int":36}}', '{"name":"bob","age":null}']
    assert json.loads(moldau_cli("schemas", "cat", "--schema", str(path)).out)["name"] == "user"
    path.write_bytes(path.read_bytes()[:-20])
    ended = moldau_cli("schemas", "cat", str(path))
    assert ended.status == 1
    assert "the file is damaged" in ended.err
    path.write_bytes(b"no")
    assert "not an Avro container file" in moldau_cli("schemas", "cat", str(path)).err


def test_container_files_are_apache_avros(tmp_path: Path) -> None:
    import avro.datafile
    import avro.io
    import avro.schema

    stream = io.BytesIO()
    write_avro_file(stream, USER, [{"name": "ada"}])
    stream.seek(0)
    with avro.datafile.DataFileReader(stream, avro.io.DatumReader()) as reader:
        assert list(reader) == [{"name": "ada"}]
    other = io.BytesIO()
    writer = avro.datafile.DataFileWriter(
        other, avro.io.DatumWriter(), avro.schema.parse(USER), codec="deflate"
    )
    writer.append({"name": "bob"})
    writer.flush()
    other.seek(0)
    assert list(AvroFile(other, USER_2)) == [{"name": "bob", "age": -1}]
