"""Keeps the event log small: Spark itself only ever adds to it.

Spark's history server reads an application from any file on, as long as none is missing in between;
so the oldest files go first.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

__all__ = ["trim_events"]

APPLICATIONS_MAX = 10
FILES_MAX = 8  # of 32 MB each, for every application
_NUMBER = re.compile(r"^events_(\d+)_")


def trim_events(folder: Path) -> None:
    applications = sorted(folder.glob("eventlog_v2_*"), key=_modified)
    for old in applications[:-APPLICATIONS_MAX]:
        shutil.rmtree(old, ignore_errors=True)
    for application in applications[-APPLICATIONS_MAX:]:
        numbered = sorted(
            (int(match[1]), path)
            for path in application.iterdir()
            if (match := _NUMBER.match(path.name)) is not None
        )
        for _, path in numbered[:-FILES_MAX]:
            path.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
