"""Which settings the options of the console tools become."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.catalogue import TOOLS
from moldau.cli.console.console_consumer import consumer_settings
from moldau.cli.console.console_producer import producer_settings
from moldau.cli.console.console_share_consumer import share_settings
from moldau.cli.main import parser_of
from moldau.cli.perf.options import perf_settings
from moldau.cli.support.failures import ToolError


def parsed(tool: str, words: str) -> argparse.Namespace:
    parser = parser_of(TOOLS[tool])
    arguments = parser.parse(["--bootstrap-server", "host:9092", *words.split()])
    arguments.parser = parser
    return arguments


def chosen(settings: dict[str, Any], *keys: str) -> list[Any]:
    return [settings.get(key) for key in keys]


@pytest.mark.parametrize(
    ("words", "linger", "batch", "codec"),
    [
        pytest.param("", 1000, 16384, "none", id="the tool's own defaults, not the producer's"),
        pytest.param("--timeout 5 --batch-size 9", 5, 9, "none", id="options"),
        pytest.param(
            "--command-property linger.ms=7 --command-property batch.size=8",
            "7",
            "8",
            "none",
            id="properties before defaults",
        ),
        pytest.param(
            "--command-property linger.ms=7 --timeout 5", 5, 16384, "none", id="options first"
        ),
        pytest.param(
            "--batch-size 9 --max-partition-memory-bytes 11", 1000, 11, "none", id="old twin wins"
        ),
        pytest.param("--compression-codec", 1000, 16384, "gzip", id="a codec without a name"),
        pytest.param("--compression-codec lz4", 1000, 16384, "lz4", id="a codec"),
    ],
)
def test_producer(words: str, linger: object, batch: object, codec: str) -> None:
    settings = producer_settings(parsed("console-producer", f"--topic t {words}"))
    assert chosen(settings, "linger.ms", "batch.size", "compression.type") == [
        linger,
        batch,
        codec,
    ]
    assert settings["client.id"] == "console-producer"


def test_a_file_gives_way_to_properties(tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    file.write_text("acks=1\nclient.id=filed\nlinger.ms=3\n")
    words = f"--topic t --command-config {file} --command-property linger.ms=4"
    settings = producer_settings(parsed("console-producer", words))
    assert chosen(settings, "acks", "client.id", "linger.ms") == ["1", "filed", "4"]


def test_a_consumer_without_a_group_leaves_no_offsets() -> None:
    settings = consumer_settings(parsed("console-consumer", "--topic t"))
    assert settings["group.id"].startswith("console-consumer-")
    assert chosen(settings, "enable.auto.commit", "auto.offset.reset", "isolation.level") == [
        "false",
        "latest",
        "read_uncommitted",
    ]


def test_a_consumer_with_a_group_commits() -> None:
    words = "--topic t --group g --from-beginning"
    settings = consumer_settings(parsed("console-consumer", words))
    assert chosen(settings, "group.id", "enable.auto.commit", "auto.offset.reset") == [
        "g",
        None,
        "earliest",
    ]


def test_the_group_may_stand_in_a_file_and_must_be_the_same_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text("group.id=filed\n")
    words = f"--topic t --command-config {file}"
    assert consumer_settings(parsed("console-consumer", words))["group.id"] == "filed"
    with pytest.raises(SystemExit):
        consumer_settings(parsed("console-consumer", f"{words} --group other"))
    assert "Detected group ids: 'filed', 'other'" in capsys.readouterr().err


def test_contradicting_starts_are_refused() -> None:
    words = "--topic t --from-beginning --command-property auto.offset.reset=latest"
    with pytest.raises(ToolError, match="Can't simultaneously specify --from-beginning"):
        consumer_settings(parsed("console-consumer", words))


def test_share_consumers_acknowledge_one_by_one() -> None:
    settings = share_settings(parsed("console-share-consumer", "--topic t"))
    assert chosen(settings, "group.id", "client.id", "share.acknowledgement.mode") == [
        "console-share-consumer",
        "console-share-consumer",
        "explicit",
    ]


def test_performance_settings_and_the_deprecated_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = parsed("consumer-perf-test", "--topic t --messages 5 --timeout")
    assert "--messages is deprecated. Use --num-records instead." in capsys.readouterr().err
    assert (arguments.num_records, arguments.timeout) == (5, 10_000)
    settings = perf_settings(arguments, group="g", client_id="c")
    assert chosen(settings, "group.id", "client.id", "check.crcs") == ["g", "c", "false"]


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("console-consumer", "--topic t --property a=b --formatter-property c=d"),
        ("console-producer", "--topic t --producer.config a --command-config b"),
        ("consumer-perf-test", "--topic t --messages 1 --num-records 2"),
    ],
)
def test_an_old_and_a_new_name_together_are_refused(
    tool: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        parsed(tool, words)
    assert raised.value.code == 1
    assert "Cannot specify both" in capsys.readouterr().err
