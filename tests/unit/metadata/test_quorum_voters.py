"""Voters of the metadata quorum come and go, and a static quorum becomes a dynamic one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.metadata.machine.controllers import register_controller
from moldau.broker.metadata.machine.feature_updates import update_features
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ControllerRegistrationRequest,
    UpdateFeaturesRequest,
)
from support.metadata_quorum import Quorum, create, play, register


@pytest.fixture
def new_quorum(tmp_path: Path, new_world: Any) -> Callable[..., Quorum]:
    return lambda **options: Quorum(tmp_path, new_world().controller.rules, **options)


def test_voters_come_and_go(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum(voters=1)

    async def main() -> None:
        first = await quorum.start()
        # Alone it never heard of anybody, which must not count against it later.
        await asyncio.sleep(60)
        await register(quorum)
        await quorum.run(create("a"))
        for node_id in (2, 3):
            await quorum.add(node_id, initial=False).start()
            await quorum.until_equal()
            service = first.service
            added = await quorum.nodes[1].within(service.add_voter(quorum.addition(node_id)))
            assert added.error_code == ErrorCode.NONE, added.error_message
        assert list(first.voters.voters) == [1, 2, 3]
        assert first.controller.image == first.image
        await quorum.run(create("b"))
        removed = await quorum.nodes[1].within(first.service.remove_voter(quorum.removal(1)))
        assert removed.error_code == ErrorCode.NONE, removed.error_message
        second = await quorum.active()
        assert second is not first
        await quorum.run(create("c"))
        image = await quorum.until_equal()
        assert sorted(image.topics_by_name) == ["a", "b", "c"]
        assert list(second.voters.voters) == [2, 3]
        assert second.controller.config.quorum_node_ids == (2, 3)
        await quorum.nodes[1].stop()
        await quorum.run(create("d"))
        await quorum.stop()

    play(main())


def test_a_controller_joins_by_itself_also_with_a_new_folder(new_quorum: Any) -> None:
    quorum: Quorum = new_quorum(controller_quorum_auto_join_enable="true")

    async def main() -> None:
        active = await quorum.start()
        await quorum.add(4, initial=False).start()
        await quorum.until(lambda: list(active.voters.voters) == [1, 2, 3, 4])
        # Its disk is replaced: the old voter goes, the new one comes.
        quorum.nodes[4].kill()
        shutil.rmtree(quorum.folder / "node4")
        node = quorum.add(4, initial=False)
        node.directory_id = UUID(int=77, version=4)
        await node.start()
        await quorum.until(lambda: node.replica in active.voters)
        await register(quorum)
        await quorum.until_equal()
        await quorum.stop()

    play(main())


async def register_controllers(quorum: Quorum) -> None:
    features = [
        ControllerRegistrationRequest.Feature(
            name=name,
            min_supported_version=levels.min_version,
            max_supported_version=levels.max_version,
        )
        for name, levels in SUPPORTED_FEATURES.items()
    ]
    for node_id in quorum.nodes:
        request = ControllerRegistrationRequest(
            controller_id=node_id, incarnation_id=UUID(int=node_id), features=features
        )
        await quorum.run(register_controller, request)


def test_a_static_quorum_becomes_a_dynamic_one(new_quorum: Any) -> None:
    voters = "1@localhost:1,2@localhost:2,3@localhost:3"
    quorum: Quorum = new_quorum(controller_quorum_voters=voters)

    def upgrade(level: int) -> Callable[[Any], Any]:
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature="kraft.version", max_version_level=level, upgrade_type=1
        )
        request = UpdateFeaturesRequest(feature_updates=[update])
        return lambda controller: update_features(controller, request)

    async def main() -> None:
        active = await quorum.start()
        await register_controllers(quorum)
        early = await quorum.run(upgrade(1))
        assert early.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert "have not reported their directory ids" in early.error_message
        assert active.finalized_features.get("kraft.version") is None
        await asyncio.sleep(10)
        done = await quorum.run(upgrade(1))
        assert done.error_code == ErrorCode.NONE, done.error_message
        again = await quorum.run(upgrade(1))
        assert again.error_code == ErrorCode.NONE
        back = await quorum.run(upgrade(0))
        assert back.error_code == ErrorCode.INVALID_UPDATE_VERSION
        await register(quorum)
        await quorum.until_equal()
        for node in quorum.nodes.values():
            assert node.shell.finalized_features["kraft.version"] == 1
            assert [v.key for v in node.shell.voters.voters.values()] == [
                each.replica for each in quorum.nodes.values()
            ]
        # What was written counts from now on, whatever the configuration says.
        for node in quorum.nodes.values():
            node.kill()
        for node in quorum.nodes.values():
            await node.start()
        active = await quorum.active()
        gone = next(i for i in (1, 2, 3) if i != active.leader_id)
        leader = quorum.nodes[active.leader_id]
        removed = await leader.within(active.service.remove_voter(quorum.removal(gone)))
        assert removed.error_code == ErrorCode.NONE, removed.error_message
        assert gone not in active.voters.voters
        await quorum.run(create("a"))
        await quorum.until_equal()
        await quorum.stop()

    play(main())


def test_a_folder_of_another_disk_has_no_vote(
    new_quorum: Any, caplog: pytest.LogCaptureFixture
) -> None:
    quorum: Quorum = new_quorum()

    async def main() -> None:
        active = await quorum.start()
        swapped = next(i for i in (1, 2, 3) if i != active.leader_id)
        await quorum.nodes[swapped].stop()
        quorum.nodes[swapped].directory_id = UUID(int=5, version=4)
        shell = await quorum.nodes[swapped].start()
        await register(quorum)
        await quorum.until_equal()
        assert not shell.raft.machine.is_voter
        await quorum.stop()

    play(main())
    told = [r for r in caplog.records if "Restore the former log directory" in r.getMessage()]
    assert len(told) == 1
