"""MinIO, built from its Go module (`make parts`): S3 for a run of tests, on 127.0.0.1."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import free_port
from support.waiting import eventually

PROGRAM = Path(__file__).parents[2] / ".cache/parts/bin/minio"
USER, PASSWORD = "moldau", "moldau-secret"
_numbers = itertools.count(1)


def minio_missing() -> str | None:
    return None if PROGRAM.exists() else f"{PROGRAM} is not here: `make parts` builds it"


@dataclass(frozen=True)
class Minio:
    url: str

    def files(self) -> Any:
        """The storage as a file system of Arrow."""
        from pyarrow import fs

        return fs.S3FileSystem(
            access_key=USER, secret_key=PASSWORD, scheme="http", region="us-east-1",
            endpoint_override=self.url.removeprefix("http://"), allow_bucket_creation=True,
        )  # fmt: skip

    def bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"test{next(_numbers)}"
        self.files().create_dir(name)
        return name

    def config(self, bucket: str) -> dict[str, str]:
        return {
            "s3.bucket.name": bucket,
            "s3.region": "us-east-1",
            "store.url": self.url,
            "aws.access.key.id": USER,
            "aws.secret.access.key": PASSWORD,
        }


@contextlib.contextmanager
def running_minio() -> Iterator[Minio]:
    folder = tempfile.mkdtemp(prefix="moldau-minio-")
    port = free_port()
    server = Minio(f"http://127.0.0.1:{port}")
    environment = {
        **os.environ, "MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": PASSWORD,
        "MINIO_UPDATE": "off", "MINIO_BROWSER": "off",
    }  # fmt: skip
    log = Path(folder) / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [PROGRAM, "server", "--quiet", "--address", f"127.0.0.1:{port}", f"{folder}/data"],
            stdout=output, stderr=subprocess.STDOUT, env=environment,
        )  # fmt: skip
    try:
        eventually(
            lambda: process.poll() is None and answers(server),
            what=f"MinIO answers: {log.read_text()}",
            seconds_max=60.0,
        )
        yield server
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def answers(server: Minio) -> bool:
    try:
        with urllib.request.urlopen(f"{server.url}/minio/health/live", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
