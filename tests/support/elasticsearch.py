"""Elasticsearch 6.8 by Maven coordinate (`make parts`): one server for a run of tests.

It runs on Java 17, listens on 127.0.0.1 at ports of its own, keeps its files in a temporary folder
and is ended by the id of its process. It refuses to run as root, so root starts it as `nobody`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import free_port
from support.waiting import eventually

ARCHIVE = Path(__file__).parents[2] / ".cache/parts/elasticsearch-6.8.23.zip"
_START_SECONDS_MAX = 120.0


def elasticsearch_missing() -> str | None:
    if not ARCHIVE.exists():
        return f"{ARCHIVE} is not here: `make parts` fetches it"
    return None if shutil.which("java") else "there is no Java"


@dataclass(frozen=True)
class Elasticsearch:
    url: str

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return json.loads(error.read() or b"null")

    def documents(self, index: str) -> dict[str, Any]:
        """The documents of an index by id."""
        self.ask("POST", f"/{index}/_refresh")
        found = self.ask("GET", f"/{index}/_search?size=1000")
        # An index that is not there yet has none.
        hits = found.get("hits", {}).get("hits", [])
        return {hit["_id"]: hit["_source"] for hit in hits}


@contextlib.contextmanager
def running_elasticsearch() -> Iterator[Elasticsearch]:
    folder = Path(tempfile.mkdtemp(prefix="moldau-elasticsearch-"))
    try:
        with zipfile.ZipFile(ARCHIVE) as archive:
            archive.extractall(folder)
        home = folder / "elasticsearch-6.8.23"
        port = free_port()
        (home / "config/elasticsearch.yml").write_text(
            f"http.port: {port}\ntransport.port: {free_port()}\nnetwork.host: 127.0.0.1\n"
            "discovery.type: single-node\n"
            "cluster.routing.allocation.disk.threshold_enabled: false\n"
            "bootstrap.system_call_filter: false\n"
        )
        (home / "data").mkdir()
        (home / "logs").mkdir(exist_ok=True)
        with _server(home, f"http://127.0.0.1:{port}") as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _server(home: Path, url: str) -> Iterator[Elasticsearch]:
    as_user: dict[str, Any] = {}
    if os.getuid() == 0:
        user = pwd.getpwnam("nobody")
        for path in (home.parent, *home.parent.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    command = [
        "java", "-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-Djava.security.manager=allow", f"-Des.path.home={home}",
        f"-Des.path.conf={home / 'config'}", "-Des.distribution.flavor=oss",
        "-Des.distribution.type=zip", f"-Djava.io.tmpdir={home / 'data'}",
        "-cp", f"{home}/lib/*", "org.elasticsearch.bootstrap.Elasticsearch",
    ]  # fmt: skip
    server = Elasticsearch(url)
    with open(home.parent / "log", "wb") as log:
        process = subprocess.Popen(
            command, cwd=home, stdout=log, stderr=subprocess.STDOUT, **as_user
        )
    try:
        eventually(
            lambda: process.poll() is None and _answers(server),
            what=f"Elasticsearch answers: {(home.parent / 'log').read_text()[-2000:]}",
            seconds_max=_START_SECONDS_MAX,
        )
        yield server
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(server: Elasticsearch) -> bool:
    try:
        return bool(server.ask("GET", "/")["version"])
    except (OSError, KeyError, ValueError):
        return False
