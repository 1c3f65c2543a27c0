"""The name of a snapshot of the metadata log."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """Everything before `end_offset` is in the snapshot; `epoch` is that of the last record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"

    @classmethod
    def of_file(cls, name: str) -> SnapshotId | None:
        found = _NAME.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2]))
