"""One broker for the applications of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.processes import BrokerProcess
from support.streams_embedded import Stage


@pytest.fixture(scope="module")
def stage(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(broker.bootstrap, tmp_path_factory.mktemp("streams"))
    yield made
    made.close()
