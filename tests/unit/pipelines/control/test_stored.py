"""What is shown of pipelines while no broker answers."""

from __future__ import annotations

import time
from pathlib import Path

from moldau.pipelines.control.folder import ControlFolder, Heartbeat
from moldau.pipelines.machine.records import State, StatusRecord
from moldau.pipelines.stored import stored_infos


def test_engines_and_restarts_are_those_of_the_last_heartbeat(tmp_path: Path) -> None:
    known = {
        "small": StatusRecord(name="small", state=State.RUNNING, engine="task", restarts=2),
        "large": StatusRecord(name="large", state=State.RUNNING),
    }
    now_ms = int(time.time() * 1000)
    ControlFolder(tmp_path).beat(
        Heartbeat(
            pid=1,
            mark="",
            at_ms=now_ms,
            round_at_ms=now_ms,
            started_at_ms=now_ms,
            bootstrap_servers="127.0.0.1:1",
            deployment="d",
            pipelines={name: status.to_json() for name, status in known.items()},
        )
    )
    found = stored_infos(tmp_path)
    assert found is not None
    assert {info.name: (info.engine, info.restarts) for info in found[0]} == {
        "small": ("task", 2),
        "large": ("spark", 0),
    }
