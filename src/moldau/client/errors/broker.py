"""One error for each code that brokers send, named as Java names its exception."""

from __future__ import annotations

from moldau.client.errors.base import (
    ApplicationRecoverableError,
    AuthenticationError,
    AuthorizationError,
    InvalidMetadataError,
    InvalidOffsetError,
    KafkaError,
    RetriableError,
)
from moldau.client.errors.local import DisconnectError, KafkaTimeoutError
from moldau.wire.errors import ErrorCode


class UnknownServerError(KafkaError):
    code = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRangeError(InvalidOffsetError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE
    advice = "seek, or set auto.offset.reset"


class CorruptRecordError(RetriableError):
    code = ErrorCode.CORRUPT_MESSAGE


class UnknownTopicOrPartitionError(InvalidMetadataError):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    advice = "create the topic, or check its name and your permissions"


class InvalidFetchSizeError(KafkaError):
    code = ErrorCode.INVALID_FETCH_SIZE


class LeaderNotAvailableError(InvalidMetadataError):
    code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderOrFollowerError(InvalidMetadataError):
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RequestTimedOutError(KafkaTimeoutError):
    code = ErrorCode.REQUEST_TIMED_OUT


class BrokerNotAvailableError(KafkaError):
    code = ErrorCode.BROKER_NOT_AVAILABLE


class ReplicaNotAvailableError(InvalidMetadataError):
    code = ErrorCode.REPLICA_NOT_AVAILABLE


class RecordTooLargeError(KafkaError):
    code = ErrorCode.MESSAGE_TOO_LARGE
    advice = "raise max.message.bytes of the topic, or send less at once"


class ControllerMovedError(KafkaError):
    code = ErrorCode.STALE_CONTROLLER_EPOCH


class OffsetMetadataTooLargeError(KafkaError):
    code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class NetworkError(DisconnectError):
    code = ErrorCode.NETWORK_EXCEPTION


class CoordinatorLoadInProgressError(RetriableError):
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailableError(RetriableError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    advice = "are there enough brokers for the internal topics' replicas?"


class NotCoordinatorError(RetriableError):
    code = ErrorCode.NOT_COORDINATOR


class InvalidTopicError(KafkaError):
    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class RecordBatchTooLargeError(KafkaError):
    code = ErrorCode.RECORD_LIST_TOO_LARGE


class NotEnoughReplicasError(RetriableError):
    code = ErrorCode.NOT_ENOUGH_REPLICAS
    advice = "bring brokers back, or lower min.insync.replicas"


class NotEnoughReplicasAfterAppendError(RetriableError):
    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    advice = "bring brokers back, or lower min.insync.replicas"


class InvalidRequiredAcksError(KafkaError):
    code = ErrorCode.INVALID_REQUIRED_ACKS


class IllegalGenerationError(ApplicationRecoverableError):
    code = ErrorCode.ILLEGAL_GENERATION


class InconsistentGroupProtocolError(KafkaError):
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    advice = "give all members of the group a common assignor"


class InvalidGroupIdError(KafkaError):
    code = ErrorCode.INVALID_GROUP_ID


class UnknownMemberIdError(ApplicationRecoverableError):
    code = ErrorCode.UNKNOWN_MEMBER_ID


class InvalidSessionTimeoutError(KafkaError):
    code = ErrorCode.INVALID_SESSION_TIMEOUT


class RebalanceInProgressError(KafkaError):
    code = ErrorCode.REBALANCE_IN_PROGRESS


class InvalidCommitOffsetSizeError(KafkaError):
    code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE


class TopicAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    advice = "ask for the permission: kafka-acls --add"


class GroupAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    advice = "ask for the permission: kafka-acls --add"


class ClusterAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    advice = "ask for the permission: kafka-acls --add"


class InvalidTimestampError(KafkaError):
    code = ErrorCode.INVALID_TIMESTAMP


class UnsupportedSaslMechanismError(KafkaError):
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class IllegalSaslStateError(KafkaError):
    code = ErrorCode.ILLEGAL_SASL_STATE


class UnsupportedVersionError(KafkaError):
    code = ErrorCode.UNSUPPORTED_VERSION
    advice = "use a newer broker, or leave the feature out"


class TopicExistsError(KafkaError):
    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitionsError(KafkaError):
    code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactorError(KafkaError):
    code = ErrorCode.INVALID_REPLICATION_FACTOR
    advice = "there are fewer brokers than replicas wanted"


class InvalidReplicaAssignmentError(KafkaError):
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class InvalidConfigurationError(KafkaError):
    code = ErrorCode.INVALID_CONFIG


class NotControllerError(RetriableError):
    code = ErrorCode.NOT_CONTROLLER


class InvalidRequestError(KafkaError):
    code = ErrorCode.INVALID_REQUEST


class UnsupportedForMessageFormatError(KafkaError):
    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class PolicyViolationError(KafkaError):
    code = ErrorCode.POLICY_VIOLATION


class OutOfOrderSequenceError(KafkaError):
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class DuplicateSequenceError(KafkaError):
    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class InvalidProducerEpochError(ApplicationRecoverableError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH
    advice = "another producer uses the same transactional.id; close this one"


class InvalidTxnStateError(KafkaError):
    code = ErrorCode.INVALID_TXN_STATE


class InvalidPidMappingError(ApplicationRecoverableError):
    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidTransactionTimeoutError(KafkaError):
    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT
    advice = "lower transaction.timeout.ms or raise the broker's maximum"


class ConcurrentTransactionsError(RetriableError):
    code = ErrorCode.CONCURRENT_TRANSACTIONS


class TransactionCoordinatorFencedError(KafkaError):
    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class TransactionalIdAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    advice = "ask for the permission: kafka-acls --add"


class SecurityDisabledError(KafkaError):
    code = ErrorCode.SECURITY_DISABLED


class OperationNotAttemptedError(KafkaError):
    code = ErrorCode.OPERATION_NOT_ATTEMPTED


class KafkaStorageError(InvalidMetadataError):
    code = ErrorCode.KAFKA_STORAGE_ERROR


class LogDirNotFoundError(KafkaError):
    code = ErrorCode.LOG_DIR_NOT_FOUND


class SaslAuthenticationFailedError(AuthenticationError):
    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class UnknownProducerIdError(KafkaError):
    code = ErrorCode.UNKNOWN_PRODUCER_ID


class ReassignmentInProgressError(KafkaError):
    code = ErrorCode.REASSIGNMENT_IN_PROGRESS


class DelegationTokenAuthDisabledError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


class DelegationTokenNotFoundError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND


class DelegationTokenOwnerMismatchError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


class DelegationTokenRequestNotAllowedError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


class DelegationTokenAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


class DelegationTokenExpiredError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_EXPIRED


class InvalidPrincipalTypeError(KafkaError):
    code = ErrorCode.INVALID_PRINCIPAL_TYPE


class GroupNotEmptyError(KafkaError):
    code = ErrorCode.NON_EMPTY_GROUP
    advice = "stop the group's members first"


class GroupIdNotFoundError(KafkaError):
    code = ErrorCode.GROUP_ID_NOT_FOUND


class FetchSessionIdNotFoundError(RetriableError):
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class InvalidFetchSessionEpochError(RetriableError):
    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class ListenerNotFoundError(InvalidMetadataError):
    code = ErrorCode.LISTENER_NOT_FOUND


class TopicDeletionDisabledError(KafkaError):
    code = ErrorCode.TOPIC_DELETION_DISABLED


class FencedLeaderEpochError(InvalidMetadataError):
    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpochError(RetriableError):
    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class UnsupportedCompressionTypeError(KafkaError):
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class StaleBrokerEpochError(KafkaError):
    code = ErrorCode.STALE_BROKER_EPOCH


class OffsetNotAvailableError(RetriableError):
    code = ErrorCode.OFFSET_NOT_AVAILABLE


class MemberIdRequiredError(KafkaError):
    code = ErrorCode.MEMBER_ID_REQUIRED


class PreferredLeaderNotAvailableError(InvalidMetadataError):
    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class GroupMaxSizeReachedError(KafkaError):
    code = ErrorCode.GROUP_MAX_SIZE_REACHED
    advice = "raise group.max.size, or start fewer members"


class FencedInstanceIdError(ApplicationRecoverableError):
    code = ErrorCode.FENCED_INSTANCE_ID
    advice = "another member uses the same group.instance.id; close this one"


class EligibleLeadersNotAvailableError(InvalidMetadataError):
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class ElectionNotNeededError(InvalidMetadataError):
    code = ErrorCode.ELECTION_NOT_NEEDED


class NoReassignmentInProgressError(KafkaError):
    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class GroupSubscribedToTopicError(KafkaError):
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class InvalidRecordError(KafkaError):
    code = ErrorCode.INVALID_RECORD


class UnstableOffsetCommitError(RetriableError):
    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class ThrottlingQuotaExceededError(RetriableError):
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class ProducerFencedError(ApplicationRecoverableError):
    code = ErrorCode.PRODUCER_FENCED
    advice = "another producer uses the same transactional.id; close this one"


class ResourceNotFoundError(KafkaError):
    code = ErrorCode.RESOURCE_NOT_FOUND


class DuplicateResourceError(KafkaError):
    code = ErrorCode.DUPLICATE_RESOURCE


class UnacceptableCredentialError(KafkaError):
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL


class InconsistentVoterSetError(KafkaError):
    code = ErrorCode.INCONSISTENT_VOTER_SET


class InvalidUpdateVersionError(KafkaError):
    code = ErrorCode.INVALID_UPDATE_VERSION


class FeatureUpdateFailedError(KafkaError):
    code = ErrorCode.FEATURE_UPDATE_FAILED


class PrincipalDeserializationFailureError(KafkaError):
    code = ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


class SnapshotNotFoundError(KafkaError):
    code = ErrorCode.SNAPSHOT_NOT_FOUND


class PositionOutOfRangeError(KafkaError):
    code = ErrorCode.POSITION_OUT_OF_RANGE


class UnknownTopicIdError(InvalidMetadataError):
    code = ErrorCode.UNKNOWN_TOPIC_ID


class DuplicateBrokerRegistrationError(KafkaError):
    code = ErrorCode.DUPLICATE_BROKER_REGISTRATION


class BrokerIdNotRegisteredError(KafkaError):
    code = ErrorCode.BROKER_ID_NOT_REGISTERED


class InconsistentTopicIdError(InvalidMetadataError):
    code = ErrorCode.INCONSISTENT_TOPIC_ID


class InconsistentClusterIdError(KafkaError):
    code = ErrorCode.INCONSISTENT_CLUSTER_ID


class TransactionalIdNotFoundError(KafkaError):
    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class FetchSessionTopicIdError(RetriableError):
    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


class IneligibleReplicaError(KafkaError):
    code = ErrorCode.INELIGIBLE_REPLICA


class NewLeaderElectedError(KafkaError):
    code = ErrorCode.NEW_LEADER_ELECTED


class OffsetMovedToTieredStorageError(KafkaError):
    code = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE


class FencedMemberEpochError(KafkaError):
    code = ErrorCode.FENCED_MEMBER_EPOCH


class UnreleasedInstanceIdError(KafkaError):
    code = ErrorCode.UNRELEASED_INSTANCE_ID


class UnsupportedAssignorError(KafkaError):
    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class StaleMemberEpochError(KafkaError):
    code = ErrorCode.STALE_MEMBER_EPOCH


class MismatchedEndpointTypeError(KafkaError):
    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE


class UnsupportedEndpointTypeError(KafkaError):
    code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


class UnknownControllerIdError(KafkaError):
    code = ErrorCode.UNKNOWN_CONTROLLER_ID


class UnknownSubscriptionIdError(KafkaError):
    code = ErrorCode.UNKNOWN_SUBSCRIPTION_ID


class TelemetryTooLargeError(KafkaError):
    code = ErrorCode.TELEMETRY_TOO_LARGE


class InvalidRegistrationError(KafkaError):
    code = ErrorCode.INVALID_REGISTRATION


class TransactionAbortableError(KafkaError):
    code = ErrorCode.TRANSACTION_ABORTABLE
    advice = "abort the transaction and begin another"


class InvalidRecordStateError(KafkaError):
    code = ErrorCode.INVALID_RECORD_STATE


class ShareSessionNotFoundError(RetriableError):
    code = ErrorCode.SHARE_SESSION_NOT_FOUND


class InvalidShareSessionEpochError(RetriableError):
    code = ErrorCode.INVALID_SHARE_SESSION_EPOCH


class FencedStateEpochError(KafkaError):
    code = ErrorCode.FENCED_STATE_EPOCH


class InvalidVoterKeyError(KafkaError):
    code = ErrorCode.INVALID_VOTER_KEY


class DuplicateVoterError(KafkaError):
    code = ErrorCode.DUPLICATE_VOTER


class VoterNotFoundError(KafkaError):
    code = ErrorCode.VOTER_NOT_FOUND


class InvalidRegularExpressionError(KafkaError):
    code = ErrorCode.INVALID_REGULAR_EXPRESSION


class RebootstrapRequiredError(KafkaError):
    code = ErrorCode.REBOOTSTRAP_REQUIRED


class StreamsInvalidTopologyError(KafkaError):
    code = ErrorCode.STREAMS_INVALID_TOPOLOGY


class StreamsInvalidTopologyEpochError(KafkaError):
    code = ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH


class StreamsTopologyFencedError(KafkaError):
    code = ErrorCode.STREAMS_TOPOLOGY_FENCED


class ShareSessionLimitReachedError(RetriableError):
    code = ErrorCode.SHARE_SESSION_LIMIT_REACHED


class GroupDeletionFailedError(KafkaError):
    code = ErrorCode.GROUP_DELETION_FAILED


class StreamsTopologyDescriptionUpdateFailedError(KafkaError):
    code = ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED


class ControllerIdNotRegisteredError(KafkaError):
    code = ErrorCode.CONTROLLER_ID_NOT_REGISTERED


ERRORS: dict[ErrorCode, type[KafkaError]] = {
    each.code: each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, KafkaError) and each.code is not None
}


def error_for(code: int, message: str | None = None) -> KafkaError:
    """The error that stands for a code in a response; a code of a later Kafka has no class."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return KafkaError(f"error code {code}: {message or 'unknown here'}")
    return ERRORS[known](message or "")


def code_of(code: int) -> ErrorCode:
    """A code in a response; one of a later Kafka counts as an unknown error."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
