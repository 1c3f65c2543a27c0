"""The spool directory source: local files, and those of real SFTP and FTP servers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.api import ConnectError
from moldau.testing.connect import SinkDriver, SourceDriver, config_errors
from support.sftp import Sftp, running_sftp, sftp_missing

CSV = "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector"


class Spool:
    def __init__(self, folder: Path) -> None:
        self.input, self.finished, self.error = (folder / name for name in ("in", "done", "bad"))
        for each in (self.input, self.finished, self.error):
            each.mkdir()

    def source(self, connector: str = "SpoolDirSource", **config: str) -> SourceDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        given = {
            "input.path": str(self.input), "finished.path": str(self.finished),
            "error.path": str(self.error), "input.file.pattern": r".*\.txt", "topic": "t",
            "empty.poll.wait.ms": "20", **keys,
        }  # fmt: skip
        return SourceDriver(connector, given)

    def write(self, name: str, content: str) -> None:
        (self.input / name).write_text(content)

    @staticmethod
    def names(folder: Path) -> list[str]:
        return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def test_csv_with_types_keys_and_a_file_that_is_done(spool: Spool) -> None:
    spool.write("a.txt", 'id,full name,price\n1,"tea, green",1.5\n2,cup,\n')
    spool.write("other.dat", "left alone")
    config = {"schema_generation_enabled": "true", "key_field": "id"}
    with spool.source(CSV, **config) as source:
        first, second = source.poll_until(2)
        assert (first.key, first.value["full_name"], first.value["price"]) == (1, "tea, green", 1.5)
        assert second.value["price"] is None
        assert {header.key: header.value for header in first.headers}["file.name"] == "a.txt"
        source.poll()
        assert spool.names(spool.finished) == []  # Its records are not in Kafka yet.
        source.commit()
        source.poll()
        assert spool.names(spool.finished) == ["a.txt"]
        assert spool.names(spool.input) == ["other.dat"]


@pytest.mark.parametrize(
    ("kind", "content", "values"),
    [
        ("lines", "one\ntwo\n", ["one", "two"]),
        ("json", '{"n": 1}\n\n[2]\n', [{"n": 1}, [2]]),
        ("binary", "all of it\n", [b"all of it\n"]),
    ],
)
def test_other_contents(spool: Spool, kind: str, content: str, values: list[Any]) -> None:
    spool.write("a.txt", content)
    with spool.source(input_format=kind) as source:
        assert [each.value for each in source.poll_until(len(values))] == values


def test_a_file_is_continued_after_a_restart(spool: Spool) -> None:
    spool.write("a.txt", "".join(f"line {number}\n" for number in range(10)))
    with spool.source(input_format="lines", batch_size="4", cleanup_policy="DELETE") as source:
        assert len(source.poll_until(4)) == 4
        source.commit()
        assert len(source.poll_until(4)) == 4
        source.restart()
        found = source.poll_until(6)
        assert [each.value for each in found] == [f"line {number}" for number in range(4, 10)]
        source.commit()
        source.poll()
        source.poll()
        assert spool.names(spool.input) == []


def test_a_file_that_cannot_be_read_is_put_aside(spool: Spool) -> None:
    spool.write("bad.txt", "a,b\n1,2\n3\n")
    with spool.source(CSV) as source, pytest.raises(ConnectError, match=r"bad\.txt.*row 2 has 1"):
        source.poll_until(3, timeout=5)
    assert spool.names(spool.error) == ["bad.txt"]
    spool.write("bad.txt", "a,b\n3\n")
    spool.write("good.txt", "a,b\n1,2\n")
    with spool.source(CSV, halt_on_error="false") as source:
        assert [each.value["a"] for each in source.poll_until(1)] == ["1"]


def test_settings_are_checked(spool: Spool) -> None:
    config = {"input.path": "x", "error.path": "y", "input.file.pattern": "(", "topic": "t"}
    assert set(config_errors(CSV, config)) == {"input.file.pattern", "finished.path"}


@pytest.fixture(scope="module")
def sftp() -> Iterator[Sftp]:
    if missing := sftp_missing():
        pytest.skip(missing)
    with running_sftp() as server:
        yield server


@contextlib.contextmanager
def running_ftp(folder: Path) -> Iterator[int]:
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

    users = DummyAuthorizer()
    users.add_user("moldau", "secret", str(folder), perm="elradfmw")

    class Handler(FTPHandler):  # type: ignore[misc]
        authorizer = users

    server = FTPServer(("127.0.0.1", 0), Handler)
    stopped = threading.Event()

    def run() -> None:
        while not stopped.is_set():
            server.serve_forever(timeout=0.1, blocking=False)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield server.socket.getsockname()[1]
    finally:
        stopped.set()
        thread.join()
        server.close_all()


def test_files_of_an_sftp_server(spool: Spool, sftp: Sftp) -> None:
    spool.write("a.txt", "one\ntwo\n")
    with spool.source(input_format="lines", **sftp.config) as source:
        assert [each.value for each in source.poll_until(2)] == ["one", "two"]
        source.commit()
        source.poll()
        source.poll()
        assert spool.names(spool.finished) == ["a.txt"]


def test_files_of_an_ftp_server(spool: Spool) -> None:
    spool.write("a.txt", "one\ntwo\n")
    with running_ftp(spool.input.parent) as port:
        config = {
            "input.location": "ftp", "sftp.host": "127.0.0.1", "sftp.port": str(port),
            "sftp.username": "moldau", "sftp.password": "secret", "input.path": "/in",
            "finished.path": "/done", "error.path": "/bad",
        }  # fmt: skip
        with spool.source(input_format="lines", **config) as source:
            assert [each.value for each in source.poll_until(2)] == ["one", "two"]
            source.commit()
            source.poll()
            source.poll()
            assert spool.names(spool.finished) == ["a.txt"]
        wrong = {**config, "sftp.password": "no"}
        with (
            spool.source(input_format="lines", **wrong) as source,
            pytest.raises(ConnectError, match="FTP"),
        ):
            source.poll()


def test_topics_to_files_of_an_sftp_server(tmp_path: Path) -> None:
    if missing := sftp_missing():
        pytest.skip(missing)
    with running_sftp() as server:
        config = {
            **server.config, "topics": "orders", "flush.size": "2", "format.class": "JsonFormat",
            "sftp.working.dir": str(tmp_path), "topics.dir": "a/b",
        }  # fmt: skip
        for _ in range(2):  # What comes again gives the same files.
            with SinkDriver("io.confluent.connect.sftp.SftpSinkConnector", config) as sink:
                sink.put([sink.record("orders", {"n": number}) for number in range(5)])
                assert sink.commit() == {("orders", 0): 4}
            files = sorted((tmp_path / "a/b/orders/partition=0").iterdir())
            assert {each.name: each.read_text() for each in files} == {
                "orders+0+0000000000.json": '{"n":0}\n{"n":1}\n',
                "orders+0+0000000002.json": '{"n":2}\n{"n":3}\n',
            }
        # The class says that files are on a server.
        spool = {
            **{k: v for k, v in server.config.items() if k != "input.location"},
            "input.path": str(tmp_path / "a/b/orders/partition=0"), "topic": "t",
            "input.file.pattern": ".*json", "error.path": str(tmp_path / "bad"),
            "finished.path": str(tmp_path / "done"),
        }  # fmt: skip
        name = "io.confluent.connect.sftp.SftpSchemaLessJsonSourceConnector"
        with SourceDriver(name, spool) as source:
            assert [each.value["n"] for each in source.poll_until(4)] == [0, 1, 2, 3]
