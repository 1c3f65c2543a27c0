"""What clients raise, on its way to another process."""

from __future__ import annotations

import pickle

import pytest

from moldau.client import TopicPartition, errors
from moldau.client.errors.topics import topic_error
from moldau.wire.errors import ErrorCode


@pytest.mark.parametrize(
    "error",
    [
        errors.RecordDeserializationError("bad", topic="t", partition=1, offset=2),
        errors.LogTruncationError("cut", {TopicPartition("t", 0): None}),
        errors.NoOffsetForPartitionError([TopicPartition("t", 0)]),
        errors.IllegalStateError("not now", advice="later"),
        errors.ConfigError("wrong", key="acks", value="7"),
        errors.error_for(3, "gone"),
    ],
)
def test_an_error_is_the_same_after_pickling(error: errors.KafkaError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("code", [each for each in ErrorCode if each is not ErrorCode.NONE])
def test_the_families_of_errors_are_those_of_the_codes(code: ErrorCode) -> None:
    error = errors.error_for(code, "x")
    assert error.retriable == code.retriable == isinstance(error, errors.RetriableError)
    # A lost connection is an error of the client's own too, and has its family.
    if code is not ErrorCode.NETWORK_EXCEPTION:
        assert code.refresh_metadata == isinstance(error, errors.InvalidMetadataError)


def test_what_is_wrong_with_a_topic_is_in_kafkas_words() -> None:
    denied = topic_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "orders")
    assert isinstance(denied, errors.TopicAuthorizationFailedError)
    assert denied.message == "Not authorized to access topics: [orders]"
    assert topic_error(ErrorCode.INVALID_TOPIC_EXCEPTION, "a b").message == "Invalid topics: [a b]"
    assert topic_error(ErrorCode.LEADER_NOT_AVAILABLE, "orders").message == "topic orders"
    assert "30000" in topic_error(30000, "orders").message
