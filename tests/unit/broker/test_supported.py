"""Settings that this version cannot honour stop the start with a line that says so."""

from __future__ import annotations

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.machine.supported import check_supported
from moldau.cli.nodes.configuration import standalone_properties
from moldau.config.errors import ConfigError

NODE = standalone_properties(port=0, data="/data")


def test_what_moldau_start_uses_is_supported() -> None:
    check_supported(BrokerConfig.from_properties(NODE))


def test_a_broker_and_a_controller_may_be_apart() -> None:
    quorum = {"controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    broker = {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:0"}
    check_supported(BrokerConfig.from_properties(NODE | quorum | broker))
    controller = {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:9093"}
    check_supported(BrokerConfig.from_properties(NODE | quorum | controller))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"remote.log.storage.system.enable": "true"}, "remote.log.storage.system.enable"),
        ({"config.providers": "file"}, "config.providers"),
        ({"replica.selector.class": "some.Selector"}, "replica.selector.class"),
        ({"group.share.persister.class.name": "some.P"}, "group.share.persister.class.name"),
    ],
    ids=["remote storage", "providers", "selector", "persister"],
)
def test_what_cannot_be_done_is_refused(changes: dict[str, str], named: str) -> None:
    config = BrokerConfig.from_properties(NODE | changes)
    with pytest.raises(ConfigError) as refused:
        check_supported(config)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)
