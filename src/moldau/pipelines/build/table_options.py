"""Options of tables as `moldau.spark.tables` takes them: folders made absolute, letters named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moldau.pipelines.definition import Pipeline, Table

_FOLDERS = ("path", "sourceArchiveDir", "warehouse")
_SQLITE = "jdbc:sqlite:"


def table_options(table: Table, pipeline: Pipeline, bootstrap: str) -> dict[str, Any]:
    """Relative folders are meant from the definition's own folder, wherever Spark runs."""
    options = dict(table.options)
    for name in (table.kind, *_FOLDERS):
        value = options.get(name)
        if isinstance(value, str):
            options[name] = _absolute(value, pipeline.base)
    if str(options.get("onError", "")).lower() == "dead_letter":
        options.setdefault("deadLetterTopic", pipeline.dead_letter)
        options.setdefault("kafka.bootstrap.servers", bootstrap)
        for key, value in pipeline.kafka.items():
            options.setdefault(f"kafka.{key}", value)
    return options


def _absolute(address: str, base: str) -> str:
    if address.startswith(_SQLITE):
        file = address.removeprefix(_SQLITE)
        relative = file and not file.startswith((":", "/", "file:"))
        return _SQLITE + str(Path(base, file)) if relative else address
    if address.startswith(("jdbc:", "/", "file:")) or "://" in address:
        return address
    return str(Path(base, address))
