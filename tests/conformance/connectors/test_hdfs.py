"""The HDFS sink against a real name node and data node."""

from __future__ import annotations

import io
import itertools
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import TopicPartition
from moldau.connect.api import RetriableError
from moldau.connect.connectors.hdfs.sink import CONFIG
from moldau.connect.connectors.hdfs.storage import WebHdfs, web_address
from moldau.data import builders
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver, config_errors
from support.java_servers import java_server_missing, running_hdfs

SINK = "io.confluent.connect.hdfs3.Hdfs3SinkConnector"
ORDER = builders.struct({"id": builders.INT32, "item": builders.STRING}, name="Order")
pytestmark = pytest.mark.long("starts a server of `make parts`; `make connectors` runs it")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def hdfs() -> Iterator[str]:
    if missing := java_server_missing("hdfs"):
        pytest.skip(missing)
    with running_hdfs() as url:
        yield url


class Site:
    def __init__(self, url: str) -> None:
        self.url = url
        self.top = f"top{next(_numbers)}"
        self.config = {
            "hdfs.url": url, "topics": "orders", "topics.dir": self.top,
            "logs.dir": f"{self.top}-logs",
            "flush.size": "3", "format.class": "JsonFormat", "filename.offset.zero.pad.width": "4",
        }  # fmt: skip

    def sink(self, **config: str) -> SinkDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        return SinkDriver(SINK, {**self.config, **keys})

    def storage(self) -> WebHdfs:
        return WebHdfs(CONFIG.parse(self.config))

    def files(self) -> dict[str, bytes]:
        storage = self.storage()
        found = {}
        for path in storage.names(f"/{self.top}/orders"):
            found[path.removeprefix(f"/{self.top}/orders/")] = storage.read(path) or b""
        storage.close()
        return found

    def is_tidy(self) -> bool:
        """Nothing is left of files under way and of logs."""
        storage = self.storage()
        left = storage.names(f"/{self.top}/+tmp") + storage.names(f"/{self.top}-logs")
        storage.close()
        return not left


@pytest.fixture
def site(hdfs: str) -> Site:
    return Site(hdfs)


def put(sink: SinkDriver, *values: Any, **parts: Any) -> None:
    sink.put([sink.record("orders", each, **parts) for each in values])


def wanted(sink: SinkDriver) -> dict[TopicPartition, int]:
    """Where the task wants to read on, once it has the partition."""
    sink.open(("orders", 0))
    return sink.task_context.rewound


def test_names_of_files_say_which_offsets_are_in_them(site: Site) -> None:
    with site.sink() as sink:
        put(sink, *({"n": number} for number in range(7)))
        assert sink.commit() == {("orders", 0): 6}
    assert site.files() == {
        "partition=0/orders+0+0000+0002.json": b'{"n":0}\n{"n":1}\n{"n":2}\n',
        "partition=0/orders+0+0003+0005.json": b'{"n":3}\n{"n":4}\n{"n":5}\n',
    }
    assert site.is_tidy()


def test_a_task_reads_on_after_what_is_stored_whatever_was_committed(site: Site) -> None:
    with site.sink() as sink:
        put(sink, *({"n": number} for number in range(6)))
    with site.sink() as sink:
        # The commit was lost: the driver begins at the first record, the task asks for a later one.
        assert wanted(sink) == {TopicPartition("orders", 0): 6}
        put(sink, *({"n": number} for number in range(9)))
    assert list(site.files()) == [
        f"partition=0/orders+0+{each}.json" for each in ("0000+0002", "0003+0005", "0006+0008")
    ]


def test_typed_files(site: Site) -> None:
    values = [Struct(ORDER, {"id": number, "item": f"i{number}"}) for number in range(3)]
    with site.sink(format_class="io.confluent.connect.hdfs3.parquet.ParquetFormat") as sink:
        put(sink, *values, value_schema=ORDER)
    ((path, data),) = site.files().items()
    assert path == "partition=0/orders+0+0000+0002.snappy.parquet"
    from pyarrow import parquet

    assert parquet.read_table(io.BytesIO(data)).to_pylist() == [
        {"id": number, "item": f"i{number}"} for number in range(3)
    ]


@pytest.mark.parametrize("renamed", [0, 1])
def test_files_of_several_folders_appear_together(
    site: Site, renamed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task dies between two renames; the next one completes them and reads on after them."""
    fields = {
        "partitioner.class": "FieldPartitioner", "partition.field.name": "kind", "flush.size": "5",
    }  # fmt: skip
    config = {name.replace(".", "_"): value for name, value in fields.items()}
    rename = WebHdfs.rename
    done = 0

    def dying(self: WebHdfs, path: str, target: str) -> None:
        nonlocal done
        if not target.endswith("/log"):
            if done >= renamed:
                raise SystemError("killed")
            done += 1
        rename(self, path, target)

    kinds = ["a", "b", "a", "b", "a"]
    with site.sink(**config) as sink, monkeypatch.context() as patched:
        patched.setattr(WebHdfs, "rename", dying)
        with pytest.raises(SystemError):
            put(sink, *({"kind": kind, "n": n} for n, kind in enumerate(kinds)))
        assert len(site.files()) == renamed
    with site.sink(**config) as sink:
        assert wanted(sink) == {TopicPartition("orders", 0): 5}
    found = {path: [json.loads(each)["n"] for each in data.splitlines()]
             for path, data in site.files().items()}  # fmt: skip
    assert found == {
        "kind=a/orders+0+0000+0004.json": [0, 2, 4],
        "kind=b/orders+0+0001+0003.json": [1, 3],
    }
    assert site.is_tidy()


def test_addresses_and_wrong_settings(site: Site) -> None:
    assert web_address("hdfs://name:8020", 9870) == "http://name:9870"
    assert web_address("swebhdfs://name:9871", 9870) == "https://name:9871"
    wrong = {**site.config, "hdfs.url": "ftp://x", "format.class": "XmlFormat"}
    assert "hdfs.url" in config_errors(SINK, wrong)
    assert "format.class" in config_errors(SINK, {**site.config, "format.class": "XmlFormat"})


def test_a_server_that_is_away_is_tried_again() -> None:
    config = {"hdfs.url": "http://127.0.0.1:1", "topics": "orders", "flush.size": "1"}
    with SinkDriver(SINK, {**config, "format.class": "JsonFormat"}) as sink:
        for _ in range(2):
            with pytest.raises(RetriableError):
                sink.put([sink.record("orders", {"n": 1})])


def test_hdfs_itself_lists_the_files(site: Site) -> None:
    with site.sink() as sink:
        put(sink, *({"n": number} for number in range(3)))
    path = f"{site.url}/webhdfs/v1/{site.top}/orders/partition=0?op=LISTSTATUS"
    with urllib.request.urlopen(path) as answer:
        (status,) = json.loads(answer.read())["FileStatuses"]["FileStatus"]
    assert (status["pathSuffix"], status["length"]) == ("orders+0+0000+0002.json", 24)
