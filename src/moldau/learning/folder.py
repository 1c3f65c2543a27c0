"""Where a course is kept: ~/.local/state/moldau/learn (XDG_STATE_HOME replaces ~/.local/state).

progress.json   how far the reader is
services.json   what the course has started, with process ids
work/           where exercises write their files
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from moldau.learning.machine.progress import Progress

__all__ = ["CourseFolder", "Started"]


@dataclass(frozen=True, slots=True)
class Started:
    """A service that the course has started; the mark tells it from a later process."""

    pid: int
    mark: str
    place: str


class CourseFolder:
    def __init__(self, environment: Mapping[str, str]) -> None:
        home = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        self.path = Path(home) / "moldau" / "learn"

    @property
    def work(self) -> Path:
        path = self.path / "work"
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def progress(self) -> Progress:
        """A file that cannot be read counts as none: the reader begins again."""
        try:
            return Progress.from_json((self.path / "progress.json").read_text())
        except (OSError, ValueError):
            return Progress()

    def keep_progress(self, progress: Progress) -> None:
        self._write("progress.json", progress.to_json())

    def services(self) -> dict[str, Started]:
        try:
            fields = json.loads((self.path / "services.json").read_text())
            return {name: Started(**each) for name, each in fields.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def keep_services(self, services: Mapping[str, Started]) -> None:
        fields = {name: asdict(each) for name, each in services.items()}
        self._write("services.json", json.dumps(fields, indent=2) + "\n")

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self, name: str, text: str) -> None:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self.path / f"{name}.tmp"
        partial.write_text(text)
        partial.replace(self.path / name)
