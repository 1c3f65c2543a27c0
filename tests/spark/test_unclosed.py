"""Programs end although Spark's parts of ours keep clients, and although their servers are gone."""

from __future__ import annotations

import socket

import pytest

from moldau.testing import Broker
from support.leaving import leave

KEPT = """
import pyarrow
from moldau.spark.columns.reading import read_range
from moldau.spark.columns.writing import ColumnWriter
from moldau.spark.sink.shell import clusters
from moldau.spark.source.machine.options import parse_options
from moldau.spark.source.stream import StreamRun

config = {"bootstrap.servers": where["bootstrap_servers"]}
rows = pyarrow.RecordBatch.from_pydict({"value": [b"a", b"b"]})
with ColumnWriter(config, default_topic="t") as writer:
    writer.write(rows)
    writer.flush()
assert sum(each.num_rows for each in read_range(config, "t", 0, 0, 2)) == 2
with clusters.lease(config) as cluster:
    cluster.open_attempt("prefix")
# In the middle of their work: what nobody closes.
begun = ColumnWriter(config, default_topic="t")
begun.write(rows)
begun.flush()
part = read_range(config, "t", 0, 0, 2, batch_rows=1)
next(part)
options = {"kafka.bootstrap.servers": where["bootstrap_servers"], "subscribe": "t"}
run = StreamRun(parse_options(options, streaming=True))
run.latest(run.initial(), limited=False)
ready()
"""
SESSION = """
from moldau.spark import session

spark = session("sc://" + where["bootstrap_servers"])
ready()
"""


@pytest.mark.parametrize("gone", [False, True], ids=["brokers there", "brokers gone"])
def test_a_process_ends_with_the_clients_that_are_kept(gone: bool) -> None:
    with Broker() as broker:
        broker.create_topic("t")
        left = leave(KEPT, broker.bootstrap_servers, broker.close if gone else None)
    assert left.problem is None, left


@pytest.mark.parametrize("gone", [False, True], ids=["server hangs", "server gone"])
def test_a_process_ends_with_a_session_whose_server_does_not_answer(gone: bool) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        left = leave(SESSION, address, server.close if gone else None)
    assert left.problem is None, left
