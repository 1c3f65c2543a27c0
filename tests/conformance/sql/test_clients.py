"""Clients that others wrote, unchanged: npm's ksqldb-client and ksqldb-js, PyPI's ksql, curl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.processes import ROOT
from support.sql_server import SqlServer

CLIENTS = ROOT / ".cache" / "sql-clients"
PYTHON = CLIENTS / "python" / "bin" / "python"
SCRIPTS = ROOT / "tests" / "node"
_TIMEOUT_S = 90


def run(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def node(script: Path, *arguments: str) -> Any:
    if shutil.which("node") is None or not (CLIENTS / "node_modules" / "ksqldb-client").is_dir():
        pytest.skip("npm's clients are not here: `make sql-clients` fetches them where Node is")
    command = ["node", str(script), *arguments]
    return json.loads(run(command, NODE_PATH=str(CLIENTS / "node_modules")))


def test_npms_clients(server: SqlServer) -> None:
    found = node(SCRIPTS / "ksqldb_client.js", server.url)
    http2, other = found["http2"], found["js"]
    assert http2["created"]["status"] == 200
    assert http2["inserted"]["data"]["rows"] == [{"status": "ok", "seq": 0}]
    assert http2["wrong"]["error"]["status"] == "error"
    assert [each["WORD"] for each in http2["pushed"]] == ["tree", "wind"]
    assert (http2["closed"]["status"], http2["streamed"]["status"]) == (200, 200)
    assert sorted(http2["pulled"]["data"]["rows"], key=str) == [
        {"WORD": "tree", "N": 1},
        {"WORD": "wind", "N": 1},
    ]
    assert http2["error"]["error"]["error_code"] == 40001
    assert http2["unknown"]["status"] == 400
    assert "WORDS" in [each["name"] for each in http2["streams"]]
    assert "COUNTS" in [each["name"] for each in http2["tables"]]
    assert "words" in [each["name"] for each in http2["topics"]]
    assert any(each["sinks"] == ["COUNTS"] for each in http2["queries"])
    assert other["rows"][0]["columnNames"] == ["ID", "NAME"]
    assert other["rows"][1:] == [[1, "Ada"], [2, "Grace"]]
    assert [each["status"] for each in other["inserted"]] == ["ok", "ok"]
    assert other["pulled"][1:] == [[1, "Ada"], [2, "Grace"]]


#: Python took these names away in 3.10; hyper, which ksql uses, was last changed in 2017.
_PYPI = """
import collections, collections.abc, json, sys
for name in collections.abc.__all__:
    setattr(collections, name, getattr(collections.abc, name))
from ksql import KSQLAPI
from ksql.errors import KSQLError

# Its own 15 seconds end a push query that waits for its first row on a busy machine.
client = KSQLAPI(sys.argv[1], timeout=80)
made = client.create_stream(
    table_name="pypi", columns_type=["id INT", "name VARCHAR"], topic="pypi", value_format="JSON"
)
inserted = client.inserts_stream("pypi", [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}])
earliest = {"auto.offset.reset": "earliest"}
sql = "SELECT * FROM pypi EMIT CHANGES LIMIT 2"
rows = list(client.query(sql, stream_properties=earliest, return_objects=True))
chunks = list(client.query(sql, stream_properties=earliest, use_http2=True))
try:
    client.ksql("DROP STREAM nothing;")
    error = None
except KSQLError as raised:
    error = str(raised)
print(json.dumps({
    "made": made, "inserted": inserted, "rows": rows, "chunks": chunks, "error": error,
    "properties": client.get_properties(), "streams": client.ksql("SHOW STREAMS;"),
    "closed": client.close_query("none"),
}))
"""


def test_pypis_ksql(server: SqlServer) -> None:
    if not PYTHON.exists():
        pytest.skip("PyPI's ksql is not here: `make sql-clients` fetches it")
    server.execute(
        "CREATE STREAM first (id INT, name VARCHAR) "
        "WITH (kafka_topic='pypi', value_format='JSON', partitions=1); DROP STREAM first;"
    )
    found = json.loads(run([str(PYTHON), "-c", _PYPI, server.url]))
    assert found["made"] is True
    assert [each["status"] for each in found["inserted"]] == ["ok", "ok"]
    assert found["rows"] == [{"ID": 1, "NAME": "Ada"}, {"ID": 2, "NAME": "Grace"}]
    assert '[2,"Grace"]' in "".join(found["chunks"])
    assert "NOTHING does not exist" in found["error"]
    assert found["streams"][0]["streams"]
    assert found["closed"] is False


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_curl_over_http2_and_http1(server: SqlServer) -> None:
    command = ["curl", "-sS", "-w", "%{http_version} %{http_code}", f"{server.url}/info"]
    assert run([*command, "--http2-prior-knowledge"]).endswith("2 200")
    # An offer to change to HTTP/2 that is not taken: the request is answered all the same.
    assert run([*command, "--http2"]).endswith("1.1 200")
    body = json.dumps({"ksql": "SHOW STREAMS;"})
    post = ["curl", "-sS", "--http2", "-d", body, f"{server.url}/ksql"]
    assert json.loads(run(post))[0]["@type"] == "streams"
