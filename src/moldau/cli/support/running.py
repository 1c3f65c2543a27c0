"""The brokers and deployments that `moldau start` runs for this user, so that commands find them.

    ~/.local/state/moldau/running/PID.json

XDG_STATE_HOME replaces ~/.local/state. A file is written when a broker is ready and removed when it
has stopped. What a killed process has left does not count: its id and start time do not match.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from moldau.cli.support.failures import Failure

__all__ = ["Announcement", "Running", "find_deployment", "running", "running_address"]

_DEFAULT_FOLDER = "moldau-data-spark"
_DEFAULT_PORT = ":9092"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    pid: int
    mark: str
    #: None if clients need settings to reach it.
    address: str | None
    data: str
    #: The directory of the Spark deployment beside it, if it has one.
    spark: str | None = None
    #: The directory of the `moldau up` that it is a part of.
    platform: str | None = None


class Announcement:
    """The file of this process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._path = _folder(environment) / f"{os.getpid()}.json"

    def make(
        self,
        *,
        address: str | None,
        data: str,
        spark: str | None = None,
        platform: str | None = None,
    ) -> None:
        """It is a convenience: a directory that cannot be written keeps no broker from serving."""
        from moldau.spark.runtime.processes import start_mark

        me = os.getpid()
        entry = Running(
            pid=me,
            mark=start_mark(me) or "",
            address=address,
            data=data,
            spark=spark,
            platform=platform,
        )
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = self._path.with_suffix(".tmp")
            partial.write_text(json.dumps(asdict(entry)))
            partial.replace(self._path)

    def withdraw(self) -> None:
        with suppress(OSError):
            self._path.unlink()


def running(environment: Mapping[str, str]) -> list[Running]:
    """What runs now; files of processes that were killed are removed."""
    found = []
    for path in sorted(_folder(environment).glob("*.json")):
        entry = _read(path)
        if entry is not None:
            found.append(entry)
        else:
            with suppress(OSError):
                path.unlink()
    return found


def running_address(environment: Mapping[str, str]) -> str | None:
    """The broker to use if none is named: the one on port 9092, or the only one."""
    addresses = [one.address for one in running(environment) if one.address is not None]
    for address in addresses:
        if address.endswith(_DEFAULT_PORT):
            return address
    return addresses[0] if len(addresses) == 1 else None


def find_deployment(given: str | None, environment: Mapping[str, str]) -> str:
    """The directory of the Spark deployment that a command is about.

    `given` with --data, either the deployment's own or that of its broker. Else the deployment in
    ./moldau-data-spark if it runs; the only one that runs; ./moldau-data-spark if it is there; the
    only one in this directory.
    """
    if given is not None:
        beside = Path(f"{given.rstrip('/')}-spark")
        is_broker = Path(given, "meta.properties").exists()
        return str(beside) if is_broker and not _is_deployment(Path(given)) else given
    up = [one.spark for one in running(environment) if one.spark is not None]
    if str(Path(_DEFAULT_FOLDER).absolute()) in up:
        return _DEFAULT_FOLDER
    if len(up) == 1:
        return _chosen(up[0])
    if Path(_DEFAULT_FOLDER).exists():
        return _DEFAULT_FOLDER
    if len(up) > 1:
        raise Failure(
            f"several deployments are running: {', '.join(sorted(up))}. Choose one: --data DIR"
        )
    here = sorted(path.name for path in Path().glob("*-spark") if _is_deployment(path))
    if len(here) > 1:
        raise Failure(f"several deployments are here: {', '.join(here)}. Choose one: --data DIR")
    return _chosen(here[0]) if here else _DEFAULT_FOLDER


def _chosen(folder: str) -> str:
    if sys.stderr.isatty():
        print(f"moldau: using the deployment in {folder}", file=sys.stderr)
    return folder


def _is_deployment(path: Path) -> bool:
    return (path / "deployment.json").exists() or (path / "settings.json").exists()


def _folder(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "moldau" / "running"


def _read(path: Path) -> Running | None:
    from moldau.spark.runtime.processes import start_mark

    try:
        fields = json.loads(path.read_text())
        known = Running.__dataclass_fields__
        entry = Running(**{name: fields[name] for name in known if name in fields})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return entry if start_mark(entry.pid) == entry.mark else None
