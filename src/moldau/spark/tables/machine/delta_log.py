"""What one commit file of Delta's log says about rows: which files it added, whether it only did.

Commits that move rows between files without changing them (`dataChange` false: compaction) add
nothing for a reader.
"""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import dataclass

from moldau.spark.tables.errors import TableError
from moldau.spark.tables.machine.growth import Version


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """A data file and the values of its partition, which are not in the file."""

    path: str
    partition: tuple[tuple[str, str | None], ...]


def commit_path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def parse_commit(number: int, text: str) -> Version:
    files: list[DeltaFile] = []
    removed, operation = False, ""
    for line in text.splitlines():
        if not line.strip():
            continue
        action = json.loads(line)
        if (add := action.get("add")) and add.get("dataChange", True):
            files.append(_file(add))
        elif (remove := action.get("remove")) and remove.get("dataChange", True):
            removed = True
        elif info := action.get("commitInfo"):
            operation = str(info.get("operation", ""))
    change = f"removes or rewrites rows ({operation or 'unnamed operation'})" if removed else ""
    return Version(number, tuple(files), change)


def _file(add: dict[str, object]) -> DeltaFile:
    path = urllib.parse.unquote(str(add["path"]))
    if add.get("deletionVector"):
        raise deletion_vector(path)
    values = add.get("partitionValues")
    partition = values.items() if isinstance(values, dict) else ()
    return DeltaFile(path, tuple((name, value or None) for name, value in partition))


def deletion_vector(path: str) -> TableError:
    return TableError(
        f"the Delta table's file {path} has a deletion vector, which this source does not read",
        "Rewrite the table (OPTIMIZE, or REORG TABLE ... APPLY (PURGE)) or read it with deltalake",
    )
