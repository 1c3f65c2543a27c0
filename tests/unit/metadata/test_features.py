"""Feature levels: defaults per release, and updates."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.metadata.machine.brokers import register_broker
from moldau.broker.metadata.machine.feature_updates import update_features
from moldau.broker.metadata.machine.features import (
    METADATA_VERSION_NAMES,
    UnknownRelease,
    default_features,
    metadata_version_of,
)
from moldau.wire.messages import FeatureLevelRecord, UpdateFeaturesRequest

World = Any


@pytest.mark.parametrize(
    ("release", "level"),
    [("4.3-IV0", 30), ("4.3", 30), ("4.3.1", 30), ("4.0", 25), ("3.7", 19), ("3.3-IV3", 7)],
)
def test_releases(release: str, level: int) -> None:
    assert metadata_version_of(release) == level


@pytest.mark.parametrize("release", ["2.8", "4.3-IV9", "", "x", "9.9"])
def test_unknown_releases(release: str) -> None:
    with pytest.raises(UnknownRelease):
        metadata_version_of(release)


def test_every_level_has_a_name() -> None:
    assert list(METADATA_VERSION_NAMES) == list(range(7, 31))


@pytest.mark.parametrize(
    ("level", "features"),
    [
        (21, {}),
        (25, {"group.version": 1, "transaction.version": 2}),
        (
            30,
            {
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "share.version": 1,
                "streams.version": 1,
                "transaction.version": 2,
            },
        ),
    ],
)
def test_what_new_clusters_start_with(level: int, features: dict[str, int]) -> None:
    assert default_features(level) == features


def update(world: World, feature: str, level: int, kind: int = 1, **options: Any) -> Any:
    request = UpdateFeaturesRequest(
        feature_updates=[
            UpdateFeaturesRequest.FeatureUpdateKey(
                feature=feature, max_version_level=level, upgrade_type=kind
            )
        ],
        validate_only=options.pop("validate_only", False),
    )
    return world.apply(update_features(world.controller, request, **options))


def test_a_level_goes_down_only_on_request_and_up_again(world: World) -> None:
    assert update(world, "group.version", 0).error_code == 95
    assert world.image.features["group.version"] == 1
    assert update(world, "group.version", 0, 2).error_code == 0
    assert "group.version" not in world.image.features
    assert update(world, "group.version", 1).error_code == 0
    assert world.records == [FeatureLevelRecord(name="group.version", feature_level=1)]


@pytest.mark.parametrize(
    ("feature", "level", "kind", "message"),
    [
        ("group.version", 9, 1, "Local controller 1 only supports versions 0-1"),
        ("nope", 1, 1, "does not support this feature"),
        ("group.version", -1, 1, "cannot be less than 0"),
        ("group.version", 0, 9, "does not support the given upgrade type"),
        ("metadata.version", 29, 2, "Refusing to perform the requested downgrade"),
        ("metadata.version", 29, 3, "Unsafe metadata downgrade is not supported"),
        ("metadata.version", 99, 1, "only supports versions 7-30"),
    ],
)
def test_refused_updates(world: World, feature: str, level: int, kind: int, message: str) -> None:
    response = update(world, feature, level, kind)
    assert response.error_code == 95
    assert message in response.error_message
    assert world.records == []


def test_a_feature_waits_for_what_it_depends_on(new_world: Any) -> None:
    world = new_world()
    world.controller.image.features["metadata.version"] = 20
    world.controller.image.features.pop("eligible.leader.replicas.version")
    response = update(world, "eligible.leader.replicas.version", 1)
    assert "depends on metadata.version at level 23" in response.error_message


def test_every_broker_must_support_the_level(world: World) -> None:
    update(world, "share.version", 0, 2)
    request = world.registration(2)
    for feature in request.features:
        if feature.name == "share.version":
            feature.max_supported_version = 0
    world.apply(register_broker(world.controller, request))
    assert "Broker 2 only supports" in update(world, "share.version", 1).error_message


def test_validate_only_changes_nothing(world: World) -> None:
    response = update(world, "group.version", 0, 2, validate_only=True)
    assert (response.error_code, world.records) == (0, [])


@pytest.mark.parametrize("version", [0, 1])
def test_old_versions_have_results_per_feature_but_one_error(world: World, version: int) -> None:
    refused = update(world, "group.version", 9, api_version=version)
    assert (refused.error_code, refused.results) == (95, [])
    taken = update(world, "group.version", 1, api_version=version)
    assert taken.error_code == 0
    assert [(each.feature, each.error_code) for each in taken.results] == [("group.version", 0)]
