"""The directory of a platform: its lock, its state and the logs of its services.

    moldau-platform/
      platform.json       what an earlier start fixed: how many brokers there are
      status.json         the state of every service, replaced as a whole each second
      broker/, cluster/   the data of the broker, or of several
      spark/              pipelines and their Spark
      logs/NAME.log       what a service prints

Invariants: the process that holds the lock is the only `moldau up` of the directory; the system
releases it when that process ends in any way. A directory without platform.json is never deleted.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from moldau.cli.support.failures import Failure, unusable_directory
from moldau.cli.support.running import running
from moldau.spark.runtime.processes import is_running

__all__ = ["DEFAULT_PLATFORM", "PlatformFolder", "find_platform"]

DEFAULT_PLATFORM: Final = "moldau-platform"
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
_TAIL_BYTES: Final = 64 * 1024


class PlatformFolder:
    """The files of one platform."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self.logs = self.path / "logs"
        self.spark = self.path / "spark"
        self._lock = self.path / ".lock"
        self._fixed = self.path / "platform.json"
        self._status = self.path / "status.json"

    def make(self) -> None:
        if "," in str(self.path):
            raise Failure(f"--data {self.path}: the name of the directory must not have a comma")
        problem = unusable_directory(str(self.path))
        if problem is not None:
            raise Failure(problem)
        strays = [path.name for path in self.path.iterdir() if path.name != self._lock.name]
        if strays and not self.exists():
            raise Failure(
                f"{self.path} is not empty and has no platform. Choose another directory with "
                "--data"
            )
        self.logs.mkdir(exist_ok=True)

    def exists(self) -> bool:
        return self._fixed.exists()

    # The lock.

    def lock(self) -> IO[str] | None:
        """Held until the file is closed; None if a `moldau up` runs here."""
        file = self._lock.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        return file

    def is_locked(self) -> bool:
        if not self._lock.exists():
            return False
        file = self.lock()
        if file is None:
            return True
        file.close()
        return False

    # What is written down.

    @property
    def fixed(self) -> dict[str, Any]:
        return _read(self._fixed) or {}

    def fix(self, fields: Mapping[str, Any]) -> None:
        _write(self._fixed, {**self.fixed, **fields})

    def status(self) -> dict[str, Any] | None:
        """The last state of a platform that runs; None if none does."""
        status = _read(self._status)
        if status is None or not is_running(status["pid"], status["mark"]):
            return None
        return status

    def write_status(self, status: Mapping[str, Any]) -> None:
        _write(self._status, status)

    def forget_status(self) -> None:
        with suppress(OSError):
            self._status.unlink()

    # Logs.

    def log(self, name: str) -> Path:
        """Pipelines keep their own logs, where `moldau pipelines` and `moldau spark` look."""
        if name == "pipelines":
            return self.spark / "control.log"
        if name == "spark":
            return self.spark / "server.log"
        return self.logs / f"{name}.log"

    def log_names(self) -> list[str]:
        names = [log.stem for log in sorted(self.logs.glob("*.log"))]
        return [*names, *(name for name in ("pipelines", "spark") if self.log(name).exists())]

    def limit_logs(self) -> None:
        """Keep each log and one before it. Services append, so an emptied file has no gap."""
        for log in self.logs.glob("*.log"):
            with suppress(OSError):
                if log.stat().st_size > LOG_BYTES_MAX:
                    shutil.copyfile(log, log.with_suffix(".log.1"))
                    os.truncate(log, 0)

    def last_lines(self, name: str, count: int) -> list[str]:
        try:
            with self.log(name).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - max(_TAIL_BYTES, count * 200)))
                text = file.read().decode(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-count:] if count else []

    def destroy(self) -> None:
        shutil.rmtree(self.path)


def find_platform(given: str | None, environment: Mapping[str, str]) -> PlatformFolder:
    """The one that is named, the one in ./moldau-platform, or the only one that runs."""
    if given is not None:
        return PlatformFolder(given)
    here = PlatformFolder(DEFAULT_PLATFORM)
    if here.exists():
        return here
    up = sorted({one.platform for one in running(environment) if one.platform is not None})
    if len(up) > 1:
        raise Failure(f"several platforms are running: {', '.join(up)}. Choose one: --data DIR")
    return PlatformFolder(up[0]) if up else here


def _read(path: Path) -> dict[str, Any] | None:
    try:
        fields = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return fields if isinstance(fields, dict) else None


def _write(path: Path, fields: Mapping[str, Any]) -> None:
    partial = path.with_name(f"{path.name}.tmp")
    try:
        partial.write_text(json.dumps(fields, indent=1))
        partial.replace(path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from None
