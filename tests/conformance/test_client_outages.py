"""A broker that is gone for a while: clients log it once when it goes and once when it is back."""

from __future__ import annotations

import logging
import re

import pytest

from moldau.client import Consumer, Producer
from moldau.testing import Broker
from support.waiting import eventually


def outage_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("client", ["producer", "consumer"])
def test_an_outage_is_two_lines(client: str, caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as node:
        where = re.escape(node.bootstrap_servers)
        begins = rf"No broker can be reached at {where}: connection refused\. Retrying"
        ends = rf"Reached {where} again after \d+\.\d s"
        node.create_topic("kept")
        quick = {"retry.backoff.max.ms": 100, "reconnect.backoff.max.ms": 100}
        settings = {"bootstrap.servers": node.bootstrap_servers, "metadata.max.age.ms": 200}
        with caplog.at_level(logging.INFO, logger="moldau.client"):
            if client == "producer":
                with Producer(settings, **_fields(quick)) as producer:
                    producer.send("kept", b"before").result(60)
                    node.kill()
                    futures = [producer.send("kept", b"meanwhile") for _ in range(3)]
                    eventually(lambda: outage_lines(caplog), what="the outage is logged")
                    node.start_nodes()
                    assert all(future.result(60).topic == "kept" for future in futures)
            else:
                with Consumer(settings, auto_offset_reset="earliest", **_fields(quick)) as consumer:
                    consumer.assign([("kept", 0)])
                    consumer.poll(0.1)
                    node.kill()
                    eventually(
                        lambda: [consumer.poll(0.1)] and outage_lines(caplog),
                        what="the outage is logged",
                    )
                    node.start_nodes()
                    node.produce("kept", "after")
                    eventually(lambda: len(consumer.poll(0.5)) > 0, what="it reads again")
            eventually(lambda: len(outage_lines(caplog)) > 1, what="its end is logged")
        first, second = outage_lines(caplog)
        assert re.fullmatch(begins, first), first
        assert re.fullmatch(ends, second), second


def _fields(settings: dict[str, int]) -> dict[str, int]:
    return {name.replace(".", "_"): value for name, value in settings.items()}
