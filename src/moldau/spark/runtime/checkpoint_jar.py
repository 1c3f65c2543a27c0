"""The jar that a server on one machine gets: our class for files of checkpoints.

Invariant: a jar that is there is whole.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from moldau.spark.runtime.machine.checkpoint_class import class_file, entry_name

__all__ = ["install"]


def install(path: Path) -> None:
    partial = path.with_name(f"{path.name}.tmp")
    with zipfile.ZipFile(partial, "w") as jar:
        jar.writestr(entry_name(), class_file())
    partial.replace(path)
