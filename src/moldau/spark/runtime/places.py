"""Where a deployment's Spark keeps things, and where what can be made again is cached.

Everything of one deployment is in one folder: moving or deleting it leaves nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from moldau.spark.runtime.errors import require

__all__ = ["DEFAULT_FOLDER", "Places", "cache_folder", "spark_home"]

DEFAULT_FOLDER = "moldau-data-spark"


class Places:
    """The files of a deployment folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        # The server has another working directory than its callers.
        self.folder = Path(folder).absolute()
        self.state = self.folder / "server.json"
        self.settings = self.folder / "settings.json"
        self.lock = self.folder / "server.lock"
        #: What sessions prove themselves with.
        self.token = self.folder / "token"
        #: Settings that must not be on a command line, which every user of the machine can read.
        self.secret_conf = self.folder / "secret.conf"
        #: What Spark logs; rolls over by itself.
        self.log = self.folder / "server.log"
        #: What the virtual machine and Python workers print.
        self.output = self.folder / "server.out"
        self.log_settings = self.folder / "log4j2.properties"
        #: How the server starts Python.
        self.python = self.folder / "python"
        #: The class that writes files of checkpoints.
        self.checkpoint_jar = self.folder / "checkpoint-files.jar"
        self.events = self.folder / "events"
        self.warehouse = self.folder / "warehouse"
        self.local = self.folder / "local"
        #: Where Spark and its Python workers talk to each other.
        self.sockets = self.folder / "sockets"
        self.checkpoints = self.folder / "checkpoints"

    def make(self) -> None:
        for folder in (self.folder, self.events, self.warehouse, self.local, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """MOLDAU_CACHE if it is set, else where this user's caches are."""
    given = environ.get("MOLDAU_CACHE")
    if given:
        return Path(given).absolute()
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "moldau" / "spark"


def spark_home() -> Path:
    """Spark as the package pyspark brings it."""
    return Path(str(require("pyspark").__file__)).parent
