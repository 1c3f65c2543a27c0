"""The pipelines of the demo: a Spark server and a control loop in a folder of their own.

They are declared in YAML beside the package; only where tables and files go is filled in here. The
server and the loop are made to outlive the process that started them, so they are ended here.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from moldau.installation import pip_install
from orders.demo.screen import PipelineSeen
from orders.demo.stage import StageError
from orders.demo.tables import Database, parquet_rows

__all__ = ["Pipelines"]

DECLARED: Final = Path(__file__).parents[3] / "pipelines"
REVENUE, TABLE, PARQUET = "revenue-per-minute", "orders-to-table", "orders-to-parquet"
NAMES: Final = (REVENUE, TABLE, PARQUET)

#: For a minute on a small machine: up soon, and not much of its memory.
_CONF: Final = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.eventLog.enabled": "false",
}
_START_S_MAX: Final = 600.0
_STOP_S_MAX: Final = 45.0
_LOOK_EVERY_S: Final = 1.0


class Pipelines:
    """Not for several threads."""

    def __init__(
        self,
        folder: Path,
        bootstrap_servers: str,
        database: Database,
        *,
        parquet: Path,
        connector: str = "auto",
    ) -> None:
        try:
            from moldau.pipelines import Pipelines as Control
            from moldau.spark import ConnectServer
        except ImportError as error:
            raise StageError(
                f"{error}: {pip_install('spark')}, or leave Spark out with --without-spark"
            ) from None
        self._folder = folder
        self._database = database
        self._parquet = parquet
        self._connector = connector
        self._control = Control(bootstrap_servers, folder=folder, timeout=_START_S_MAX)
        self._server = ConnectServer(folder, conf=_CONF, connector=connector)
        self._looked_at = 0.0
        self._seen: list[PipelineSeen] = []

    def start(self, check: Callable[[], None]) -> None:
        """Returns when all have read what there is. `check` is called meanwhile, and may raise.

        One after the other: each brings Python processes with it that Spark gives ten seconds to
        start, which on a small machine is not much for all of them at once.
        """
        from moldau.pipelines import Pipeline, PipelineError
        from moldau.spark import SparkRuntimeError

        self._database.prepare()
        sinks: Mapping[str, dict[str, Any]] = {
            TABLE: {"jdbc": self._database.jdbc_url},
            PARQUET: {"parquet": str(self._parquet)},
        }
        try:
            self._server.places.make()
            self._server.remember()
            deadline = time.monotonic() + _START_S_MAX
            for name in NAMES:
                fields = Pipeline.load(DECLARED / f"{name}.yaml").to_json()
                fields["sink"] |= sinks.get(name, {})
                fields["connector"] = self._connector
                self._control.start(Pipeline.from_json(fields), wait=False)
                self._wait_until_running(name, deadline, check)
        except (PipelineError, SparkRuntimeError) as error:
            raise StageError(str(error)) from None

    def _wait_until_running(self, name: str, deadline: float, check: Callable[[], None]) -> None:
        while True:
            info = self._control.show(name)
            found = _seen(info)
            if found.state == "running" and info.progress is not None:
                return
            check()
            # What may pass is tried again by the control loop.
            if found.state == "failed":
                raise StageError(f"pipeline {name}: {found.error}")
            if time.monotonic() > deadline:
                raise StageError(
                    f"pipeline {name} is {found.state} after {_START_S_MAX:.0f} s: {found.error}"
                )
            time.sleep(0.1)

    def seen(self) -> Sequence[PipelineSeen]:
        """As it was at most a second ago."""
        if time.monotonic() - self._looked_at >= _LOOK_EVERY_S:
            found = {info.name: info for info in self._control.list()}
            self._seen = [_seen(found[name]) for name in NAMES if name in found]
            self._looked_at = time.monotonic()
        return self._seen

    def rows(self) -> int:
        """How many orders all tables hold."""
        return min(len(read()) for read in self.tables().values())

    def tables(self) -> dict[str, Callable[[], Sequence[tuple[str, str]]]]:
        return {
            self._database.name: self._database.rows,
            "Parquet": lambda: parquet_rows(self._parquet),
        }

    def stop(self) -> None:
        """Ends pipelines, loop and server; what cannot be ended in time is killed."""
        from moldau.pipelines import PipelineError, daemon
        from moldau.spark import SparkRuntimeError

        for name in NAMES:
            with contextlib.suppress(PipelineError):
                self._control.delete(name, wait=False)
        deadline = time.monotonic() + _STOP_S_MAX
        with contextlib.suppress(PipelineError):
            while time.monotonic() < deadline and {*NAMES} & {
                info.name for info in self._control.list()
            }:
                time.sleep(0.1)
            daemon.stop(self._folder)
        self._control.close()
        with contextlib.suppress(SparkRuntimeError):
            self._server.stop()


def _seen(info: Any) -> PipelineSeen:
    error = info.last_error
    return PipelineSeen(
        info.name,
        info.state,
        lag=None if info.progress is None else info.progress.lag_records,
        error=None if error is None else f"{error.where or ''} {error.message}".strip(),
    )
