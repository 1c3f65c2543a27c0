"""Settings of the clients: typed keyword arguments, and keys that no client knows."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from moldau.client.config import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS, gather, known_keys
from moldau.client.config.keywords import (
    AdminKeywords,
    ConsumerKeywords,
    ProducerKeywords,
    ShareConsumerKeywords,
)
from moldau.client.config.serializer_keys import DESERIALIZER_KEYS, SERIALIZER_KEYS
from moldau.client.errors import ConfigError
from moldau.client.producer.settings import producer_settings
from moldau.client.share.settings import REFUSED
from moldau.config.definition import ConfigDef
from support.processes import ROOT

PASSED_ON = {key.replace(".", "_") for key in (*SERIALIZER_KEYS, *DESERIALIZER_KEYS)}
WHERE = {"bootstrap.servers": "127.0.0.1:9092"}


def test_keyword_arguments_are_what_the_key_tables_say() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_settings.py"), "--check"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.parametrize(
    ("keywords", "keys", "but"),
    [
        pytest.param(ProducerKeywords, PRODUCER_KEYS, (), id="producer"),
        pytest.param(ConsumerKeywords, CONSUMER_KEYS, (), id="consumer"),
        pytest.param(ShareConsumerKeywords, CONSUMER_KEYS, REFUSED, id="share consumer"),
        pytest.param(AdminKeywords, ADMIN_KEYS, (), id="admin"),
    ],
)
def test_every_key_is_a_keyword_argument(
    keywords: type, keys: ConfigDef, but: tuple[str, ...]
) -> None:
    wanted = {key.field for name, key in keys.items() if name not in but and not key.internal}
    typed = set(get_type_hints(keywords))
    assert wanted <= typed
    passed_on = {name for name in typed - wanted if name in PASSED_ON}
    assert typed == wanted | passed_on


def given_as_mapping(settings: Mapping[str, Any]) -> dict[str, Any]:
    return gather(PRODUCER_KEYS, {**WHERE, **settings}, {})


def given_as_keywords(settings: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name.replace(".", "_"): value for name, value in settings.items()}
    return gather(PRODUCER_KEYS, WHERE, fields)


BOTH = pytest.mark.parametrize("given", [given_as_mapping, given_as_keywords])
Given = Callable[[Mapping[str, Any]], dict[str, Any]]


@BOTH
def test_a_key_that_no_client_knows_is_refused(given: Given) -> None:
    with pytest.raises(ConfigError, match=r"^Unknown configuration lingerms\. Did you mean linger"):
        given({"lingerms": 5})


@BOTH
def test_a_key_of_another_client_is_logged_and_ignored(
    given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    settings = given({"max.poll.records": 5})
    with caplog.at_level(logging.WARNING):
        producer_settings(settings, {})
    assert [each.getMessage() for each in caplog.records] == [
        "The configuration 'max.poll.records' is not known here."
    ]


class Configured:
    def configure(self, config: Mapping[str, Any], is_key: bool) -> None:
        self.shade = config["paint.shade"]

    def serialize(self, topic: str, data: Any, headers: Any) -> bytes | None:
        return None


def test_a_plug_in_gets_the_keys_that_no_client_knows() -> None:
    serializer = Configured()
    settings = given_as_mapping({"paint.shade": "red", "value.serializer": serializer})
    producer_settings(settings, {})
    assert serializer.shade == "red"


@BOTH
def test_keys_of_kafkas_serializers_are_passed_on(given: Given) -> None:
    key = "value.serializer.encoding"
    settings = producer_settings(given({key: "latin-1", "value.serializer": "string"}), {})
    assert settings.value_serializer("topic", "é", []) == b"\xe9"


def test_tools_leave_out_what_no_client_knows(caplog: pytest.LogCaptureFixture) -> None:
    assert known_keys({"acks": "1", "made.up": "x"}) == {"acks": "1"}
    assert "made.up" in caplog.text


def test_a_missing_address_is_asked_for_in_python() -> None:
    with pytest.raises(ConfigError, match=r'bootstrap_servers="127\.0\.0\.1:9092"$'):
        producer_settings(None, {})


USES = """
    from moldau.client import (
        Admin, AsyncConsumer, Consumer, ConsumerRecord, KafkaError, Producer, ShareConsumer,
    )

    Producer(bootstrap_servers="x:1", linger_ms=5, acks="all", compression_type="zstd")
    Producer(lingerms=5)
    Producer(compression_type="zst")
    Consumer(linger_ms=5)
    ShareConsumer(auto_offset_reset="earliest")
    Admin(bootstrap_server="x:1")
    consumer: Consumer[str, int] = Consumer(bootstrap_servers="x:1", group_id=None)

    def use(record: ConsumerRecord[str, int]) -> int:
        return record.value

    for record in consumer:
        reveal_type(record.key)
        use(record)
    for record in consumer.poll():
        reveal_type(record.value)

    async def read(other: AsyncConsumer[bytes, str]) -> None:
        async for each in other:
            reveal_type(each.value)

    def plain(any_consumer: Consumer) -> None:
        any_consumer.produce()
"""


# Takes some seconds: mypy reads the whole client.
def test_a_type_checker_finds_misspelt_settings_and_knows_keys_and_values(tmp_path: Path) -> None:
    program = tmp_path / "uses.py"
    program.write_text(textwrap.dedent(USES))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(program)]
    command.append(f"--cache-dir={tmp_path / 'cache'}")
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = [
        line.partition("uses.py:")[2].partition(" [")[0].rstrip()
        for line in ended.stdout.splitlines()
        if line.startswith("uses.py:")
    ]
    errors = [each for each in found if ": error:" in each]
    assert [each.partition(":")[0] for each in errors] == ["7", "8", "9", "10", "11", "28"]
    assert 'Unexpected keyword argument "lingerms"' in errors[0]
    revealed = [each.partition("type is ")[2] for each in found if "note: Revealed" in each]
    # Some versions of mypy say "builtins.str".
    kinds = [each.strip('"').removeprefix("builtins.") for each in revealed]
    assert kinds == ["str", "int", "str"]
