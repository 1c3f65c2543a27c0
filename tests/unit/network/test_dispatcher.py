"""What becomes of a request frame, on a network without sockets."""

from __future__ import annotations

import asyncio
import inspect
import logging
import struct
import time
from collections import deque
from collections.abc import Awaitable, Collection, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.handlers.api_versions import ApiVersionsHandler, FeatureLevels
from moldau.broker.metrics.requests import RequestMetrics
from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.network.dispatcher import Dispatcher, Route
from moldau.broker.network.interface import FrameReceiver, InvalidRequest, Network, Reply
from moldau.broker.network.machine.error_responses import error_response
from moldau.broker.network.settings import NetworkSettings
from moldau.metrics import Registry
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import encode
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.framing import decode_response, encode_request_frame, encode_response_frame
from moldau.wire.message import Message
from moldau.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    ProduceRequest,
)

FEATURES = FeatureLevels(
    supported={"metadata.version": (7, 30), "group.version": (0, 1)},
    finalized={"metadata.version": 30, "group.version": 1},
    finalized_epoch=42,
)


class MemoryNetwork:
    """A network that is only queues: what a simulation puts in the place of sockets."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._receivers: dict[str, FrameReceiver] = {}

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        return {name: ("memory", index) for index, name in enumerate(self._names)}

    async def bind(self) -> None:
        pass

    def update_address_rates(self, default: float | None, limits: Mapping[str, float]) -> None: ...

    def update_settings(self, settings: NetworkSettings) -> None:
        pass

    async def start(
        self, receiver: FrameReceiver, listeners: Collection[str] | None = None
    ) -> None:
        self._receivers |= dict.fromkeys(self._names if listeners is None else listeners, receiver)

    async def stop(self, grace_s: float) -> None:
        self._receivers.clear()

    def connect(self, listener: str = "PLAINTEXT") -> MemoryConnection:
        return MemoryConnection(self._receivers[listener], ConnectionInfo(listener_name=listener))


class MemoryConnection:
    def __init__(self, receiver: FrameReceiver, info: ConnectionInfo) -> None:
        self.info = info
        self._receiver = receiver
        self._requests: deque[bytes] = deque()

    def send(self, frame: bytes) -> None:
        self._requests.append(frame[4:])

    async def receive(self) -> bytes | None:
        """Have the oldest request answered; nothing else looks at it before."""
        # A buffer that is overwritten at once, as the shared receive buffer is.
        buffer = bytearray(self._requests.popleft())
        reply = self._receiver.dispatch(self.info, memoryview(buffer))
        buffer[:] = bytes(len(buffer))
        if isinstance(reply, Awaitable):
            reply = await reply
        return b"".join(reply) if isinstance(reply, list) else reply

    async def ask(self, key: ApiKey, version: int, request: Message) -> Any:
        self.send(encode_request_frame(API_BY_KEY[key], version, 7, "tester", request))
        reply = await self.receive()
        assert reply is not None
        assert len(reply) == 4 + struct.unpack_from(">i", reply)[0]
        correlation_id, response = decode_response(API_BY_KEY[key], version, reply[4:])
        assert correlation_id == 7
        return response


def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    match request.group_id:
        case "refused":
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, "who?")
        case "bug":
            raise ZeroDivisionError("a bug")
        case "wrong type":
            return HeartbeatResponse(error_code="x")  # type: ignore[arg-type]
    return HeartbeatResponse(throttle_time_ms=context.api_version)


async def late_heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    await asyncio.sleep(0)
    return heartbeat(context, request)


def find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not yet")


async def inactive(context: RequestContext, request: Message) -> Message:
    await asyncio.sleep(0)
    raise ApiError(ErrorCode.NOT_CONTROLLER, "this controller is not active")


def raw_produce(context: RequestContext, frame: memoryview, body_position: int) -> Reply:
    body = bytes(frame[body_position:])
    return [struct.pack(">ii", 4 + len(body), context.correlation_id), body]


async def late_raw(context: RequestContext, frame: memoryview, body_position: int) -> Reply:
    await asyncio.sleep(0)
    return raw_produce(context, frame, body_position)


def silent_raw(context: RequestContext, frame: memoryview, body_position: int) -> Reply:
    return None


def failing_raw(context: RequestContext, frame: memoryview, body_position: int) -> Reply:
    raise ApiError(ErrorCode.CORRUPT_MESSAGE, "bad batch")


def network_with(routes: dict[ApiKey, Route]) -> MemoryNetwork:
    routes[ApiKey.API_VERSIONS] = Route(ApiVersionsHandler(routes, lambda: FEATURES).handle)
    network = MemoryNetwork("PLAINTEXT", "CONTROLLER")
    as_network: Network = network
    asyncio.run(as_network.start(Dispatcher(routes)))
    return network


def ask(network: MemoryNetwork, key: ApiKey, version: int, request: Message) -> Any:
    return asyncio.run(network.connect().ask(key, version, request))


def send(network: MemoryNetwork, frame: bytes, listener: str = "PLAINTEXT") -> bytes | None:
    connection = network.connect(listener)
    connection.send(frame)
    return asyncio.run(connection.receive())


@pytest.mark.parametrize("handle", [heartbeat, late_heartbeat], ids=["at once", "later"])
class TestGeneric:
    def test_answers_in_the_asked_version(self, handle: Any) -> None:
        network = network_with({ApiKey.HEARTBEAT: Route(handle)})
        for version in (1, 3, 4):
            response = ask(network, ApiKey.HEARTBEAT, version, HeartbeatRequest(group_id="g"))
            assert response == HeartbeatResponse(throttle_time_ms=version)

    def test_client_errors_are_answered(
        self, handle: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        network = network_with({ApiKey.HEARTBEAT: Route(handle)})
        response = ask(network, ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id="refused"))
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert not caplog.records

    @pytest.mark.parametrize("group_id", ["bug", "wrong type"])
    def test_bugs_are_logged_once_and_answered(
        self, handle: Any, group_id: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        network = network_with({ApiKey.HEARTBEAT: Route(handle)})
        response = ask(network, ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id=group_id))
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert caplog.records[0].exc_info is not None
        assert "Heartbeat (key 12) v4" in caplog.text


@pytest.mark.parametrize("with_metrics", [True, False])
def test_only_what_is_appended_is_answered_by_a_future(with_metrics: bool) -> None:
    """A connection lets the next Produce go ahead of a future, and of nothing else."""

    async def main() -> None:
        appended: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        answers: list[Any] = [late_raw, lambda *_: appended]

        def produce(context: RequestContext, frame: memoryview, position: int) -> Any:
            return answers.pop(0)(context, memoryview(bytearray(frame)), position)

        metrics = RequestMetrics(Registry(time.monotonic))
        dispatcher = Dispatcher(
            {ApiKey.PRODUCE: Route(produce, raw=True, pipelined=True)},
            metrics=metrics if with_metrics else None,
        )
        frame = encode_request_frame(API_BY_KEY[ApiKey.PRODUCE], 9, 7, "t", ProduceRequest())
        connection = ConnectionInfo(listener_name="PLAINTEXT")
        verified = dispatcher.dispatch(connection, memoryview(frame[4:]))
        assert inspect.iscoroutine(verified)
        assert dispatcher.dispatch(connection, memoryview(frame[4:])) is appended
        appended.set_result(None)
        assert await verified is not None
        await asyncio.sleep(0)
        if with_metrics:
            assert metrics.api("Produce", 9).requests.count == 2

    asyncio.run(main())


def test_error_messages_travel_where_there_is_room() -> None:
    network = network_with({ApiKey.FIND_COORDINATOR: Route(find_coordinator)})
    response = ask(network, ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert response.error_message == "not yet"
    # From v4 on the errors are per coordinator, so the handler has to place them.
    with pytest.raises(InvalidRequest, match=r"FindCoordinator \(key 10\) v4.*not yet"):
        ask(network, ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))


def test_errors_are_told_per_topic_where_an_api_has_no_other_place() -> None:
    network = network_with({ApiKey.CREATE_TOPICS: Route(inactive)})
    asked = CreateTopicsRequest(
        topics=[CreateTopicsRequest.CreatableTopic(name=name) for name in ("a", "b")]
    )
    response = ask(network, ApiKey.CREATE_TOPICS, 7, asked)
    assert [(each.name, each.error_code) for each in response.topics] == [
        ("a", ErrorCode.NOT_CONTROLLER),
        ("b", ErrorCode.NOT_CONTROLLER),
    ]


@pytest.mark.parametrize(
    ("key", "version", "placed"),
    [
        pytest.param(ApiKey.FETCH, 6, False, id="Fetch got its error code in v7"),
        pytest.param(ApiKey.FETCH, 7, True, id="Fetch v7"),
        pytest.param(ApiKey.PRODUCE, 9, False, id="Produce has none"),
        pytest.param(ApiKey.INIT_PRODUCER_ID, 0, True, id="InitProducerId"),
    ],
)
def test_error_response_knows_whether_it_is_heard(key: ApiKey, version: int, placed: bool) -> None:
    response: Any = error_response(API_BY_KEY[key], version, ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    assert (response is not None) == placed
    if response is not None:
        encode(response, version)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_error_response_leaves_the_rest_at_its_default() -> None:
    response = error_response(API_BY_KEY[ApiKey.FETCH], 12, ErrorCode.FENCED_LEADER_EPOCH)
    assert response == FetchResponse(error_code=ErrorCode.FENCED_LEADER_EPOCH)


@pytest.mark.parametrize("handle", [raw_produce, late_raw], ids=["at once", "coroutine"])
def test_raw_handlers_get_the_body_and_answer_themselves(handle: Any) -> None:
    network = network_with({ApiKey.PRODUCE: Route(handle, raw=True)})
    request = ProduceRequest(acks=1, timeout_ms=30_000)
    for version in (8, 9):
        frame = encode_request_frame(API_BY_KEY[ApiKey.PRODUCE], version, 5, "c", request)
        body = encode(request, version)
        assert send(network, frame) == struct.pack(">ii", 4 + len(body), 5) + body


def test_a_raw_handler_may_have_no_answer() -> None:
    network = network_with({ApiKey.PRODUCE: Route(silent_raw, raw=True)})
    frame = encode_request_frame(API_BY_KEY[ApiKey.PRODUCE], 9, 5, "c", ProduceRequest())
    assert send(network, frame) is None


def test_a_client_error_out_of_a_raw_handler_closes() -> None:
    network = network_with({ApiKey.PRODUCE: Route(failing_raw, raw=True)})
    frame = encode_request_frame(API_BY_KEY[ApiKey.PRODUCE], 9, 5, "c", ProduceRequest())
    with pytest.raises(InvalidRequest, match=r"Produce \(key 0\) v9: CORRUPT_MESSAGE: bad batch"):
        send(network, frame)


def refusing_raw(context: RequestContext, frame: memoryview, body_position: int) -> Reply:
    raise InvalidRequest("acks=0 and the append failed")


def test_a_raw_handler_may_close_and_the_reason_names_the_request() -> None:
    network = network_with({ApiKey.PRODUCE: Route(refusing_raw, raw=True)})
    frame = encode_request_frame(API_BY_KEY[ApiKey.PRODUCE], 9, 5, "c", ProduceRequest())
    with pytest.raises(InvalidRequest, match=r"Produce \(key 0\) v9: acks=0 and"):
        send(network, frame)


def header(key: int, version: int, rest: bytes = b"\xff\xff\0") -> bytes:
    payload = struct.pack(">hhi", key, version, 9) + rest
    return struct.pack(">i", len(payload)) + payload


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        pytest.param(header(9999, 0), "unknown API key 9999 v0 is not served", id="unknown key"),
        pytest.param(header(-1, 0), "unknown API key -1", id="negative key"),
        pytest.param(header(1, 12), r"Fetch \(key 1\) v12 is not served", id="no route"),
        pytest.param(header(12, 99), r"Heartbeat \(key 12\) v99.*0 to 4", id="version too new"),
        pytest.param(header(12, -1), r"Heartbeat \(key 12\) v-1.*0 to 4", id="version negative"),
        pytest.param(header(0, 2), r"Produce \(key 0\) v2.*3 to 1", id="advertised, not answered"),
        pytest.param(b"\0\0\0\0", "0 bytes is too short", id="empty"),
        pytest.param(b"\0\0\0\3abc", "3 bytes is too short", id="too short"),
        pytest.param(header(12, 4, b""), "bad request header", id="no client id"),
        pytest.param(header(12, 4, b"\0\x09abc"), "bad request header", id="client id cut off"),
        pytest.param(header(12, 4), r"Heartbeat \(key 12\) v4: .*malformed", id="no body"),
        pytest.param(header(12, 4, b"\xff\xff\0\xff\xff\xff\xff\x0f"), "v4: ", id="garbage body"),
    ],
)
def test_what_cannot_be_answered_closes_with_the_reason(frame: bytes, reason: str) -> None:
    network = network_with(
        {ApiKey.HEARTBEAT: Route(heartbeat), ApiKey.PRODUCE: Route(silent_raw, raw=True)}
    )
    with pytest.raises(InvalidRequest, match=reason):
        send(network, frame)


FUZZED = network_with({ApiKey.HEARTBEAT: Route(heartbeat)})
GOOD = encode_request_frame(
    API_BY_KEY[ApiKey.HEARTBEAT], 4, 1, "client", HeartbeatRequest(group_id="g", member_id="m")
)[4:]


@given(
    st.one_of(
        st.binary(max_size=60),
        st.binary(max_size=40).map(lambda tail: GOOD[:8] + tail),
        st.tuples(st.integers(0, len(GOOD)), st.binary(max_size=4)).map(
            lambda edit: GOOD[: edit[0]] + edit[1] + GOOD[edit[0] + len(edit[1]) :]
        ),
        st.integers(0, len(GOOD)).map(lambda size: GOOD[:size]),
    )
)
def test_any_bytes_are_answered_or_refused(payload: bytes) -> None:
    try:
        reply = send(FUZZED, struct.pack(">i", len(payload)) + payload)
    except InvalidRequest:
        return
    assert reply is not None
    # The correlation id is the third field of every header.
    assert reply[4:8] == payload[4:8]


def test_listeners_may_serve_different_things() -> None:
    own = {ApiKey.HEARTBEAT: Route(heartbeat)}
    network = MemoryNetwork("PLAINTEXT", "CONTROLLER")
    asyncio.run(network.start(Dispatcher(own), ["CONTROLLER"]))
    asyncio.run(network.start(Dispatcher({ApiKey.METADATA: Route(heartbeat)}), ["PLAINTEXT"]))
    frame = encode_request_frame(API_BY_KEY[ApiKey.HEARTBEAT], 4, 1, None, HeartbeatRequest())
    assert send(network, frame, "CONTROLLER") is not None
    with pytest.raises(InvalidRequest, match="not served on this listener"):
        send(network, frame, "PLAINTEXT")
    other = encode_request_frame(API_BY_KEY[ApiKey.METADATA], 4, 1, None, MetadataRequest())
    with pytest.raises(InvalidRequest, match="not served on this listener"):
        send(network, other, "CONTROLLER")


def test_the_context_tells_who_asks() -> None:
    seen: list[RequestContext] = []

    def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        seen.append(context)
        return HeartbeatResponse()

    network = network_with({ApiKey.HEARTBEAT: Route(handle)})
    connection = network.connect()
    connection.info.principal = "User:alice"
    asyncio.run(connection.ask(ApiKey.HEARTBEAT, 3, HeartbeatRequest()))
    (context,) = seen
    assert context.api_key is ApiKey.HEARTBEAT
    assert (context.api_version, context.correlation_id, context.client_id) == (3, 7, "tester")
    assert (context.principal, context.listener_name) == ("User:alice", "PLAINTEXT")
    assert context.connection is connection.info


class TestApiVersions:
    NETWORK = network_with(
        {
            ApiKey.PRODUCE: Route(silent_raw, raw=True),
            ApiKey.HEARTBEAT: Route(heartbeat, min_version=1, max_version=3),
        }
    )
    SERVED = ((0, 0, 13), (12, 1, 3), (18, 0, 4))

    def served(self, response: ApiVersionsResponse) -> tuple[tuple[int, int, int], ...]:
        return tuple((api.api_key, api.min_version, api.max_version) for api in response.api_keys)

    def request(self, name: str = "librdkafka", version: str = "2.16.0") -> ApiVersionsRequest:
        return ApiVersionsRequest(client_software_name=name, client_software_version=version)

    @pytest.mark.parametrize("version", range(5))
    def test_lists_exactly_the_routes(self, version: int) -> None:
        response = ask(self.NETWORK, ApiKey.API_VERSIONS, version, self.request())
        assert response.error_code == ErrorCode.NONE
        assert self.served(response) == self.SERVED

    @pytest.mark.parametrize(
        ("version", "supported"),
        [
            (2, {}),
            (3, {"metadata.version": (7, 30)}),
            (4, {"group.version": (0, 1), "metadata.version": (7, 30)}),
        ],
    )
    def test_features(self, version: int, supported: dict[str, tuple[int, int]]) -> None:
        response = ask(self.NETWORK, ApiKey.API_VERSIONS, version, self.request())
        features = response.supported_features
        assert {each.name: (each.min_version, each.max_version) for each in features} == supported
        finalized = {each.name: each.max_version_level for each in response.finalized_features}
        assert finalized == (FEATURES.finalized if version >= 3 else {})
        assert response.finalized_features_epoch == (42 if version >= 3 else -1)

    @pytest.mark.parametrize("version", [5, 99, 32767, -1])
    def test_unknown_versions_are_answered_in_version_0(self, version: int) -> None:
        # The body and even the header of that version are unknown; nothing of it is read.
        reply = send(self.NETWORK, header(18, version, b"\x7f\xff garbage"))
        assert reply is not None
        correlation_id, response = decode_response(API_BY_KEY[18], 0, reply[4:])
        assert isinstance(response, ApiVersionsResponse)
        assert correlation_id == 9
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert self.served(response) == ((18, 0, 4),)

    @pytest.mark.parametrize(
        ("name", "version", "valid"),
        [
            ("apache-kafka-java", "4.3.0", True),
            ("a", "1", True),
            ("", "1", False),
            ("name", "", False),
            ("-name", "1", False),
            ("name", "1.", False),
            ("two words", "1", False),
            ("line\n", "1", False),
            ("ünicode", "1", False),
        ],
    )
    def test_client_software_is_checked(self, name: str, version: str, valid: bool) -> None:
        connection = self.NETWORK.connect()
        asking = connection.ask(ApiKey.API_VERSIONS, 3, self.request(name, version))
        response = asyncio.run(asking)
        if valid:
            assert response.error_code == ErrorCode.NONE
            known = (connection.info.client_software_name, connection.info.client_software_version)
            assert known == (name, version)
        else:
            assert response.error_code == ErrorCode.INVALID_REQUEST
            assert connection.info.client_software_name == "unknown"

    def test_software_is_unknown_before_v3(self) -> None:
        response = ask(self.NETWORK, ApiKey.API_VERSIONS, 2, ApiVersionsRequest())
        assert response.error_code == ErrorCode.NONE

    def test_a_controller_listener_does_not_pretend(self) -> None:
        routes = {ApiKey.PRODUCE: Route(silent_raw, raw=True)}
        handler = ApiVersionsHandler(routes, lambda: FEATURES, broker_listener=False)
        response = handler.handle(RequestContext(ApiKey.API_VERSIONS, 0), ApiVersionsRequest())
        assert self.served(response) == ((0, 3, 13),)
        encode_response_frame(API_BY_KEY[18], 0, 1, response)


def test_a_request_is_carried_out_although_its_client_has_gone() -> None:
    """LeaveGroup is often the last word of a connection."""
    carried_out: list[str] = []

    async def scenario() -> None:
        done = asyncio.Event()

        async def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
            await asyncio.sleep(0)
            carried_out.append(request.group_id)
            done.set()
            return HeartbeatResponse()

        dispatcher = Dispatcher({ApiKey.HEARTBEAT: Route(handle)})
        frame = encode_request_frame(
            API_BY_KEY[ApiKey.HEARTBEAT], 4, 1, "c", HeartbeatRequest(group_id="g")
        )
        reply = dispatcher.dispatch(ConnectionInfo(), memoryview(bytearray(frame[4:])))
        assert isinstance(reply, Awaitable)
        waiting = asyncio.ensure_future(reply)
        waiting.cancel()
        await asyncio.wait_for(done.wait(), 60)
        await dispatcher.stop()

    asyncio.run(scenario())
    assert carried_out == ["g"]


def test_a_request_begins_although_the_dispatcher_stops_at_once() -> None:
    """What was never begun cannot clean up, and Python complains of a coroutine never awaited."""
    ended: list[str] = []

    async def scenario() -> None:
        async def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(request.group_id)
            return HeartbeatResponse()

        dispatcher = Dispatcher({ApiKey.HEARTBEAT: Route(handle)})
        frame = encode_request_frame(
            API_BY_KEY[ApiKey.HEARTBEAT], 4, 1, "c", HeartbeatRequest(group_id="g")
        )
        dispatcher.dispatch(ConnectionInfo(), memoryview(bytearray(frame[4:])))
        await dispatcher.stop()

    asyncio.run(scenario())
    assert ended == ["g"]
