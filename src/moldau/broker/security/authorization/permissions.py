"""What the sender of one request may do: what the rules of an API ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import UUID

from moldau.broker.network.context import RequestContext
from moldau.broker.security.authorization.authorization import Authorization
from moldau.wire.acls import CLUSTER_NAME, OPERATIONS_OF, AclOperation, ResourceType
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message

T = TypeVar("T")

Answer: TypeAlias = Message | Awaitable[Message]
#: Has the request, or what is left of it, answered.
Handle: TypeAlias = Callable[[Any], Answer]


class TopicNames(Protocol):
    """The topics there are; ACLs know them by name only."""

    def name_of(self, topic_id: UUID) -> str | None: ...

    def id_of(self, name: str) -> UUID:
        """Zero if there is no such topic."""
        ...

    def names(self) -> Iterable[str]: ...

    def __contains__(self, name: object) -> bool: ...

    @property
    def auto_created(self) -> bool:
        """Whether Metadata creates topics that are asked for and do not exist."""
        ...


class Permissions:
    __slots__ = ("_authorization", "context", "topics")

    def __init__(
        self, authorization: Authorization, context: RequestContext, topics: TopicNames
    ) -> None:
        self._authorization = authorization
        self.context = context
        self.topics = topics

    @property
    def version(self) -> int:
        return self.context.api_version

    def may(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        logged: bool = True,
    ) -> bool:
        return self._authorization.allows(
            self.context, operation, resource_type, name, logged=logged
        )

    def may_topic(self, operation: AclOperation, name: str, *, logged: bool = True) -> bool:
        return self.may(operation, ResourceType.TOPIC, name, logged=logged)

    def may_group(self, operation: AclOperation, name: str, *, logged: bool = True) -> bool:
        return self.may(operation, ResourceType.GROUP, name, logged=logged)

    def may_cluster(self, operation: AclOperation, *, logged: bool = True) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, logged=logged)

    def may_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether there may be a resource of this type on which the operation is allowed."""
        return self._authorization.allows_any(self.context, operation, resource_type)

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """What is allowed on a resource, as a bit field: bit n is the operation number n."""
        return sum(
            1 << operation
            for operation in OPERATIONS_OF[resource_type]
            if self._authorization.allows(
                self.context, operation, resource_type, name, logged=False, only_asked=True
            )
        )

    def cluster_operations(self) -> int:
        if not self.may_cluster(AclOperation.DESCRIBE):
            return 0
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME)

    # Whole requests: the error is raised. ------------------------------------------------------

    def require_cluster(self, operation: AclOperation) -> None:
        if not self.may_cluster(operation):
            raise cluster_denied(self.context)

    def require_group(self, operation: AclOperation, group_id: str) -> None:
        if not self.may_group(operation, group_id):
            raise ApiError(
                ErrorCode.GROUP_AUTHORIZATION_FAILED,
                "Not authorized to access group: Group authorization failed.",
            )

    def require_transactional_id(self, operation: AclOperation, transactional_id: str) -> None:
        if not self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id):
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "The transactional id used by the application is not authorized.",
            )


class Rule(Protocol):
    """The permissions that one API needs.

    It answers itself, raises ApiError, or has `handle` answer what is left of the request."""

    def __call__(self, permissions: Permissions, request: Any, handle: Handle) -> Answer: ...


def cluster_denied(context: RequestContext) -> ApiError:
    return ApiError(
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        f"{context.principal} at {context.client_host} is not authorized.",
    )


def split(items: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """What is allowed and what is not, in the order of the request."""
    allowed: list[T] = []
    denied: list[T] = []
    for item in items:
        (allowed if is_allowed(item) else denied).append(item)
    return allowed, denied


def then(answer: Answer, change: Callable[[Any], Message]) -> Answer:
    """`change` applied to the answer, at once if it is there."""
    if isinstance(answer, Message):
        return change(answer)
    return _change_later(answer, change)


async def _change_later(answer: Awaitable[Message], change: Callable[[Any], Message]) -> Message:
    return change(await answer)
