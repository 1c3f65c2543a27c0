"""FileStream connectors, through the test driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.connect.api import ConfigError, ConnectError, SourcePartition
from moldau.testing.connect import SinkDriver, SourceDriver

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def test_lines_become_records_and_a_task_continues_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes("één\r\ntwo\nunfin".encode())
    with SourceDriver(SOURCE, {"file": str(file), "topic": "lines"}) as source:
        assert [each.value for each in source.poll_until(2)] == ["één", "two"]
        assert source.poll() == []
        source.commit()
        assert source.offsets == {SourcePartition({"filename": str(file)}): {"position": 11}}
        with file.open("a") as more:
            more.write("ished\nlast\n")
        source.restart()
        assert [each.value for each in source.poll_until(2)] == ["unfinished", "last"]


def test_a_batch_has_at_most_batch_size_lines(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("".join(f"{n}\n" for n in range(10)))
    config = {"file": str(file), "topic": "lines", "batch.size": "4"}
    with SourceDriver("FileStreamSource", config) as source:
        assert [len(source.poll()) for _ in range(4)] == [4, 4, 2, 0]


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="topic"):
        SourceDriver("FileStreamSource", {"file": "x"})
    with pytest.raises(ConnectError, match="Did you mean FileStreamSource"):
        SourceDriver("FileStramSource", {"file": "x"})


def test_records_become_lines(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    with SinkDriver("FileStreamSink", {"file": str(file), "topics": "t"}) as sink:
        sink.send("t", "one")
        sink.send("t", {"a": 1.5, "b": [True, None]}, partition=3)
        assert sink.commit() == {("t", 0): 1, ("t", 3): 1}
        assert file.read_text() == "one\n{a=1.5, b=[true, null]}\n"


def test_lines_are_in_the_file_before_a_commit(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    with SinkDriver("FileStreamSink", {"file": str(file), "topics": "lines"}) as sink:
        sink.send("lines", "one")
        assert file.read_text() == "one\n"
