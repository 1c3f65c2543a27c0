"""Registrations of the quorum's controllers (KIP-919)."""

from __future__ import annotations

from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import CONTROLLER_REGISTRATION_METADATA_VERSION
from moldau.broker.metadata.machine.model import ControllerNode, endpoints_from, features_from
from moldau.broker.metadata.machine.view import ControllerView
from moldau.broker.metadata.machine.writer import controller_record
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import ControllerRegistrationRequest, ControllerRegistrationResponse


def register_controller(
    controller: ControllerView, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Record where a controller listens and which features it supports."""
    if controller.image.metadata_version < CONTROLLER_REGISTRATION_METADATA_VERSION:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    node = ControllerNode(
        id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_from(request.listeners),
        features=features_from(request.features),
    )
    response = ControllerRegistrationResponse(error_message=None)
    return Decision((controller_record(node),), response)
