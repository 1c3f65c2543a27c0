"""The rows of a run as a table for the terminal and as JSON for bench/results."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import psutil
from rich.table import Table

from bench.run import Row, Run


def table_of(rows: list[Row]) -> Table:
    table = Table(title="Moldau beside Apache Kafka and the machine's limit, one run")
    table.add_column("what")
    table.add_column("unit")
    for column in ("Moldau", "Kafka", "limit", "of Kafka", "of limit"):
        table.add_column(column, justify="right")
    table.add_column("aim")
    for row in rows:
        cells = [row.moldau, row.kafka, row.limit]
        shown = ["" if cell is None else f"{cell:,.2f}" for cell in cells]
        ratios = ["" if not cell else f"{row.moldau / cell:.2f}" for cell in cells[1:]]
        table.add_row(row.what, row.unit, *shown, *ratios, row.aim)
    return table


def write_json(run: Run, names: list[str], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    machine = {
        "cores": psutil.cpu_count(),
        "memory_gb": psutil.virtual_memory().total / 1e9,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    rows = [{name: getattr(row, name) for name in Row.__slots__} for row in run.rows]
    path.write_text(json.dumps({"machine": machine, "scale": run.scale, "rows": rows}, indent=1))
