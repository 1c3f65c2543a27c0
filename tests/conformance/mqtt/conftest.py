"""A broker and an MQTT proxy in front of it, shared by the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.http_service import running
from support.mqtt import port_of, proxy_of
from support.processes import BrokerProcess


@pytest.fixture(scope="module")
def proxy(broker: BrokerProcess) -> Iterator[int]:
    """The port."""
    with running(lambda: proxy_of(broker.bootstrap)) as service:
        yield port_of(service.url)
