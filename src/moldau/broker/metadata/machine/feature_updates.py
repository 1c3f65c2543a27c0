"""Raising and lowering finalized feature levels (UpdateFeatures).

All updates of a request take effect together or not at all. A level is only accepted when every
registered broker and controller supports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NoReturn

from moldau.broker.metadata.machine.configs import MIN_INSYNC_REPLICAS
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import (
    CONTROLLER_REGISTRATION_METADATA_VERSION,
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    feature_dependencies,
    metadata_format_changed,
)
from moldau.broker.metadata.machine.model import ResourceType, VersionRange
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    controller: ControllerView, request: UpdateFeaturesRequest, *, api_version: int = 2
) -> Decision[UpdateFeaturesResponse]:
    """One error stands for the whole request; only the results of success differ by version."""
    records: list[Any] = []
    kraft_version: int | None = None
    error: ApiError | None = None
    updates = {update.feature: update.max_version_level for update in request.feature_updates}
    proposed = {**controller.image.features, METADATA_VERSION: controller.image.metadata_version}
    proposed.update(updates)
    for update in request.feature_updates:
        upgrade_type = update.upgrade_type
        if api_version == 0:
            upgrade_type = (
                UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
            )
        try:
            _check(controller, update.feature, update.max_version_level, upgrade_type, proposed)
        except ApiError as problem:
            error = problem
            break
        level, current = update.max_version_level, _current(controller, update.feature)
        if update.feature == KRAFT_VERSION:
            # The quorum writes its level itself; the answer waits for a record of ours after it.
            records.append(NoOpRecord())
            kraft_version = level if level != current else None
        elif level != current:
            records.append(FeatureLevelRecord(name=update.feature, feature_level=level))
    response = _response(updates, error, api_version)
    if error is not None or request.validate_only:
        return Decision((), response)
    if updates.get(ELR_VERSION, 0) > 0:
        records = [*_records_before_elr(controller), *records]
    return Decision(tuple(records), response, kraft_version=kraft_version)


def _records_before_elr(controller: ControllerView) -> list[ConfigRecord]:
    """With ELR the minimum decides which replicas are eligible, so it must be the same for all
    (KIP-966)."""
    records = []
    image = controller.image
    if MIN_INSYNC_REPLICAS not in image.cluster_configs():
        records.append(_min_isr_record("", str(controller.config.min_insync_replicas)))
    for (kind, name), values in image.configs.items():
        if kind == ResourceType.BROKER and name and MIN_INSYNC_REPLICAS in values:
            records.append(_min_isr_record(name, None))
    return records


def _min_isr_record(name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=ResourceType.BROKER,
        resource_name=name,
        name=MIN_INSYNC_REPLICAS,
        value=value,
    )


def _response(
    updates: Iterable[str], error: ApiError | None, api_version: int
) -> UpdateFeaturesResponse:
    if error is not None:
        return UpdateFeaturesResponse(
            error_code=error.code,
            error_message="The update failed for all features since the following feature had an"
            f" error: {error.message}",
        )
    if api_version >= 2:
        return UpdateFeaturesResponse(error_message=None)
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdateFeaturesResponse.UpdatableFeatureResult(feature=name, error_message=None)
            for name in updates
        ],
    )


def _current(controller: ControllerView, feature: str) -> int:
    if feature == METADATA_VERSION:
        return controller.image.metadata_version
    if feature == KRAFT_VERSION:
        return controller.kraft_version
    return controller.image.features.get(feature, 0)


def _check(
    controller: ControllerView,
    feature: str,
    level: int,
    upgrade_type: int,
    proposed: Mapping[str, int],
) -> None:
    if upgrade_type not in set(UpgradeType):
        raise _invalid(feature, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(feature, level, "A feature version cannot be less than 0.")
    reason = _reason_not_supported(controller, feature, level)
    if reason is not None:
        raise _invalid(feature, level, reason)
    current = _current(controller, feature)
    if level < current:
        if upgrade_type == UpgradeType.UPGRADE:
            raise _invalid(
                feature,
                level,
                "Can't downgrade the version of this feature without setting the upgrade type to"
                " either safe or unsafe downgrade.",
            )
        if feature == METADATA_VERSION and metadata_format_changed(current, level):
            _refuse_metadata_downgrade(current, level, upgrade_type)
    elif level > current and upgrade_type != UpgradeType.UPGRADE:
        raise _invalid(feature, level, "Can't downgrade to a newer version.")
    if feature == KRAFT_VERSION:
        _check_kraft_version(controller, level, current, upgrade_type)
        return
    for needed, at_least in feature_dependencies(feature, level).items():
        if proposed.get(needed, 0) < at_least:
            raise _invalid(
                feature,
                level,
                f"{feature}={level} depends on {needed} at level {at_least} or above.",
            )


def _check_kraft_version(
    controller: ControllerView, level: int, current: int, upgrade_type: int
) -> None:
    """It lives in the quorum's control records, and says how the voters are known."""
    if upgrade_type != UpgradeType.UPGRADE:
        if level != current:
            raise _invalid(KRAFT_VERSION, level, "Can't downgrade the version of this feature.")
    elif level != current:
        controller.check_kraft_upgrade(level)


def _reason_not_supported(controller: ControllerView, feature: str, level: int) -> str | None:
    local = SUPPORTED_FEATURES.get(feature)
    problem = _range_problem(f"Local controller {controller.config.node_id}", local, level)
    if problem is not None:
        return problem
    for broker in controller.image.brokers.values():
        problem = _range_problem(f"Broker {broker.id}", broker.features.get(feature), level)
        if problem is not None:
            return problem
    for node in controller.image.controllers.values():
        if node.id != controller.config.node_id:
            problem = _range_problem(f"Controller {node.id}", node.features.get(feature), level)
            if problem is not None:
                return problem
    if controller.image.metadata_version >= CONTROLLER_REGISTRATION_METADATA_VERSION:
        for node_id in controller.config.quorum_node_ids:
            if node_id != controller.config.node_id and node_id not in controller.image.controllers:
                return f"controller {node_id} has not registered, and may not support this feature"
    return None


def _range_problem(node: str, levels: VersionRange | None, level: int) -> str | None:
    if levels is None:
        return None if level == 0 else f"{node} does not support this feature."
    if level in levels or level == 0 == levels.min_version:
        return None
    return f"{node} only supports versions {levels.min_version}-{levels.max_version}"


def _refuse_metadata_downgrade(current: int, level: int, upgrade_type: int) -> NoReturn:
    # Records of the higher version may already be in the log; a reader of the lower one would
    # stumble over them, and rewriting the log is not supported here or in Kafka.
    problem = (
        "Unsafe metadata downgrade is not supported in this version."
        if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata"
        " information."
    )
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {level}. {problem}",
    )


def _invalid(feature: str, level: int, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {feature}. {reason}",
    )
