"""SCRAM credentials of users: set, deleted and described by the Admin API.

Decided here: which alterations are accepted, with Kafka's errors. A request names a user and
mechanism once; one bad alteration refuses all of that user's, and no other user's.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import SCRAM_METADATA_VERSION
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.view import ControllerView
from moldau.security.machine.scram import ScramMechanism, credential_of
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

__all__ = ["alter_user_scram_credentials", "describe_user_scram_credentials"]

_Change: TypeAlias = (
    AlterUserScramCredentialsRequest.ScramCredentialDeletion
    | AlterUserScramCredentialsRequest.ScramCredentialUpsertion
)

_MECHANISMS = {each.value: each for each in ScramMechanism}


class _Problem(NamedTuple):
    code: ErrorCode
    message: str


def alter_user_scram_credentials(
    controller: ControllerView, request: AlterUserScramCredentialsRequest
) -> Decision[AlterUserScramCredentialsResponse]:
    image = controller.image
    problems: dict[str, _Problem | None] = {}
    altered: set[tuple[int, str]] = set()
    changes: list[_Change] = [*request.deletions, *request.upsertions]
    for change in changes:
        key = (change.mechanism, change.name)
        problem = _problem_of(image, change)
        if problem is None and key in altered:
            problem = _Problem(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
        altered.add(key)
        problems[change.name] = problems.get(change.name) or problem
    records: list[Any] = [
        RemoveUserScramCredentialRecord(name=each.name, mechanism=each.mechanism)
        for each in request.deletions
        if problems[each.name] is None
    ]
    records += [_record(each) for each in request.upsertions if problems[each.name] is None]
    return Decision(tuple(records), _response(problems))


def _response(problems: dict[str, _Problem | None]) -> AlterUserScramCredentialsResponse:
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    return AlterUserScramCredentialsResponse(
        results=[
            result(user=user, error_code=0, error_message=None)
            if problem is None
            else result(user=user, error_code=problem.code, error_message=problem.message)
            for user, problem in problems.items()
        ]
    )


def _problem_of(image: MetadataImage, change: _Change) -> _Problem | None:
    mechanism = _MECHANISMS.get(change.mechanism)
    if not change.name:
        return _Problem(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism is None:
        return _Problem(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if image.metadata_version < SCRAM_METADATA_VERSION:
        return _Problem(
            ErrorCode.UNSUPPORTED_VERSION, "The current metadata version does not support SCRAM"
        )
    if isinstance(change, AlterUserScramCredentialsRequest.ScramCredentialDeletion):
        if (change.mechanism, change.name) not in image.scram:
            return _Problem(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            )
        return None
    if change.iterations < mechanism.iterations_min:
        return _Problem(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > mechanism.iterations_max:
        return _Problem(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def _record(
    change: AlterUserScramCredentialsRequest.ScramCredentialUpsertion,
) -> UserScramCredentialRecord:
    mechanism = _MECHANISMS[change.mechanism]
    credential = credential_of(mechanism, change.salted_password, change.salt, change.iterations)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=change.iterations,
    )


def describe_user_scram_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Without names, or with an empty list of them: all users."""
    asked: dict[str, bool] = {}
    for user in request.users or ():
        asked[user.name] = user.name in asked
    if not asked:
        asked = {name: False for _, name in sorted(image.scram, key=lambda key: key[1])}
    return DescribeUserScramCredentialsResponse(
        results=[_described(image, user, is_twice) for user, is_twice in asked.items()],
    )


def _described(
    image: MetadataImage, user: str, is_twice: bool
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    info = DescribeUserScramCredentialsResponse.CredentialInfo
    if is_twice:
        return result(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {user}",
        )
    found = [image.scram.get((mechanism, user)) for mechanism in _MECHANISMS]
    infos = [info(mechanism=each.mechanism, iterations=each.iterations) for each in found if each]
    if not infos:
        return result(
            user=user,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user}",
        )
    return result(user=user, credential_infos=infos)
