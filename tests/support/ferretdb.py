"""FerretDB, built from its Go module (`make parts`): MongoDB over SQLite, on 127.0.0.1."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.processes import free_port
from support.waiting import eventually

PROGRAM = Path(__file__).parents[2] / ".cache/parts/bin/ferretdb"


def ferretdb_missing() -> str | None:
    return None if PROGRAM.exists() else f"{PROGRAM} is not here: `make parts` builds it"


@contextlib.contextmanager
def running_ferretdb() -> Iterator[str]:
    """Its address."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="moldau-ferretdb-") as folder:
        (Path(folder) / "data").mkdir()
        process = subprocess.Popen(
            [PROGRAM, f"127.0.0.1:{port}", f"file:{folder}/data/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            eventually(lambda: _answers(port), what="FerretDB answers", seconds_max=60.0)
            yield f"mongodb://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def _answers(port: int) -> bool:
    import pymongo
    import pymongo.errors

    client: pymongo.MongoClient[dict[str, object]]
    with pymongo.MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=500) as client:
        try:
            return bool(client.admin.command("ping"))
        except pymongo.errors.PyMongoError:
            return False
