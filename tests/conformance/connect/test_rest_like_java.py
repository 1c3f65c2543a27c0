"""Apache Kafka's worker and ours get the same requests in the same order, and answer the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.connect_requests import STEPS, difference, play
from support.connect_workers import distributed_worker
from support.java_workers import java_worker
from support.processes import BrokerProcess


@pytest.mark.long("starts Apache Kafka's Connect, a JVM that takes half a minute")
def test_the_same_answers(broker: BrokerProcess, tmp_path: Path) -> None:
    with java_worker(broker.bootstrap, "theirs", tmp_path) as url:
        theirs = play(url, _folder(tmp_path, "theirs"), "topic-of-theirs")
    with distributed_worker(broker.bootstrap, "ours") as worker:
        ours = play(worker.url, _folder(tmp_path, "ours"), "topic-of-ours")
    differences = [
        f"{step}: {found}"
        for step, one, other in zip(STEPS, theirs, ours, strict=True)
        if (found := difference(step, one, other)) is not None
    ]
    assert differences == []


def _folder(parent: Path, name: str) -> Path:
    folder = parent / f"folder-of-{name}"
    folder.mkdir()
    return folder
