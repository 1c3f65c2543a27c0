"""Fixtures for logs in temporary folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.config import LogConfig
from support.log_folder import LogFolder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[LogFolder]:
    folder = LogFolder(tmp_path)
    yield folder
    if folder.log is not None:
        folder.log.close(clean=False)


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., LogFolder]:
    def make(**config: Any) -> LogFolder:
        return LogFolder(tmp_path, LogConfig(**{"file_delete_delay_ms": 0, **config}))

    return make
