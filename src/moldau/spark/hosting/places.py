"""The files of a hosted application in the deployment folder, which loop and workers share.

Invariants: every file but the logs is replaced as a whole; the settings may hold passwords, so only
the owner reads the folder.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from moldau.spark.hosting.machine.application import HostedApplication
from moldau.spark.hosting.machine.beats import InstanceBeat
from moldau.spark.hosting.machine.supervision import SignalSeen

__all__ = ["ApplicationPlaces"]

_OWNER_ONLY: Final = 0o600


class ApplicationPlaces:
    """See the module."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._application = self.folder / "application.json"
        self._signal = self.folder / "signal.json"
        self.logs = self.folder / "logs"

    def make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        self.logs.mkdir(exist_ok=True)

    # What is to run.

    def write_application(self, application: HostedApplication) -> None:
        self.make()
        _write(self._application, application.to_json())

    def application(self) -> HostedApplication:
        return HostedApplication.from_json(self._application.read_text())

    # The signal.

    def signal(self, run: str, *, stop: bool) -> None:
        self.make()
        _write(self._signal, json.dumps({"run": run, "stop": stop}))

    def signal_seen(self) -> SignalSeen:
        try:
            fields = json.loads(self._signal.read_text())
            return SignalSeen(str(fields["run"]), bool(fields["stop"]))
        except (OSError, ValueError, KeyError):
            return SignalSeen(None)

    # What instances report.

    def beat(self, beat: InstanceBeat) -> None:
        _write(self._beat_file(beat.instance), beat.to_json())

    def beats(self, instances: int) -> list[InstanceBeat]:
        found = []
        for number in range(instances):
            try:
                found.append(InstanceBeat.from_json(self._beat_file(number).read_text()))
            except (OSError, ValueError):
                continue
        return found

    def _beat_file(self, number: int) -> Path:
        return self.folder / f"instance-{number}.json"

    def log(self, number: int) -> Path:
        return self.logs / f"instance-{number}.log"

    def disk(self, number: int) -> Path:
        """The local disk of an instance."""
        return self.folder / "disk" / str(number)


def _write(path: Path, text: str) -> None:
    made = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    made.replace(path)
