"""What a client sees of one connection: order, waiting, slow readers, refusals."""

from __future__ import annotations

import asyncio
import socket
import struct
import weakref
from typing import Any

import pytest

Serving = Any
Run = Any


def test_answers_come_in_request_order(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            requests = [b"echo %d" % number for number in range(300)]
            await client.send(*requests)
            assert [await client.receive() for _ in requests] == requests

    run(main())


def test_byte_by_byte_gives_the_same(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            for byte in struct.pack(">i", 6) + b"echo 1" + struct.pack(">i", 6) + b"echo 2":
                await client.send_raw(bytes([byte]))
            assert await client.receive() == b"echo 1"
            assert await client.receive() == b"echo 2"

    run(main())


@pytest.mark.parametrize("size", [1_000_000, 1_048_576, 3_000_000, 9_999_995])
def test_large_requests_arrive_whole(serving: Serving, run: Run, size: int) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            first = b"none " + bytes(index % 251 for index in range(1000)) * (size // 1000)
            second = b"none " + b"s" * size
            await client.send(first, second, b"echo end")
            assert await client.receive() == b"echo end"
            assert server.receiver.seen == [first, second, b"echo end"]

    run(main())


def test_frames_may_be_written_to_by_the_handler(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            assert await client.ask(b"scribble") == b"xxxxxxxx"

    run(main())


def test_requests_without_an_answer_do_not_disturb_the_others(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            server.receiver.gate.set()
            await client.send(b"none 1", b"echo 2", b"wait-none 3", b"none 4", b"echo 5")
            assert await client.receive() == b"echo 2"
            assert await client.receive() == b"echo 5"
            assert len(server.receiver.seen) == 5

    run(main())


def test_the_next_request_waits_for_the_answer_to_the_last(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client, other = await server.connect(), await server.connect()
            await client.send(b"echo 1", b"wait 2", b"echo 3")
            assert await client.receive() == b"echo 1"
            await server.until(lambda: server.receiver.waiting == 1)
            await client.send(b"wait 4", b"echo 5")
            # Another connection is served meanwhile, and uses the same receive buffer.
            assert await other.ask(b"echo " + b"o" * 200) == b"echo " + b"o" * 200
            assert b"echo 3" not in server.receiver.seen
            server.receiver.gate.set()
            answers = [await client.receive() for _ in range(4)]
            assert answers == [b"wait 2", b"echo 3", b"wait 4", b"echo 5"]

    run(main())


def test_a_long_queue_behind_a_waiting_request_is_kept_by_the_client(
    serving: Serving, run: Run
) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            await client.send(b"wait 1")
            await server.until(lambda: server.receiver.waiting == 1)
            queue = b"none " + b"q" * 995
            flood = asyncio.ensure_future(client.send(*[queue] * 5_000, b"echo end"))
            done, _ = await asyncio.wait([flood], timeout=0.3)
            assert not done, "5 MB were taken in while a request was waiting"
            server.receiver.gate.set()
            assert await client.receive() == b"wait 1"
            assert await client.receive() == b"echo end"
            await flood
            assert server.receiver.seen.count(queue) == 5_000

    run(main())


def test_a_busy_connection_does_not_starve_another(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            busy, other = await server.connect(), await server.connect()
            await other.ask(b"echo warm")
            await busy.send(*[b"none %06d" % number for number in range(5_000)])
            await other.send(b"echo me")
            await other.receive()
            seen = server.receiver.seen
            await server.until(lambda: len(seen) == 5_002)
            assert seen.index(b"echo me") < 5_001 - 2_000

    run(main())


def test_a_request_begins_although_its_connection_is_closed_at_once(
    serving: Serving, run: Run
) -> None:
    """What was never begun cannot clean up, and Python complains of a coroutine never awaited."""

    async def main() -> None:
        async with serving() as server:
            receiver = server.receiver
            dispatch = receiver.dispatch

            async def counted(work: Any) -> Any:
                return await work

            def close_before_it_begins(*arguments: Any) -> Any:
                (connection,) = server.network.connections
                asyncio.get_running_loop().call_soon(connection.close)
                return counted(dispatch(*arguments))

            receiver.dispatch = close_before_it_begins
            client = await server.connect()
            await client.send(b"wait 1")
            assert await client.closed_by_server()
            await server.until(lambda: receiver.cancelled == 1)

    run(main())


def test_leaving_cancels_the_request_that_waits(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            await client.send(b"wait 1", b"echo never")
            await server.until(lambda: server.receiver.waiting == 1)
            client.close()
            await server.until(lambda: server.receiver.cancelled == 1)
            await server.until(lambda: server.network.connection_count == 0)
            assert server.receiver.seen == [b"wait 1"]

    run(main())


def test_what_was_sent_before_leaving_is_carried_out(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            await client.send(*[b"none %d" % number for number in range(1_000)])
            client.close()
            await server.until(lambda: server.network.connection_count == 0)
            assert server.receiver.seen == [b"none %d" % number for number in range(1_000)]

    run(main())


class Page(bytearray):
    """Stands for a mapped segment: tells when nobody looks at it any more."""


def test_a_slow_reader_gets_everything_and_then_frees_it(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client, other = await server.connect(buffer_bytes=4096), await server.connect()
            page = Page(bytes(range(256)) * 4096)
            gone = weakref.ref(page)
            expected = bytes(page) * 4 + b"tail"
            server.receiver.buffers = [memoryview(page)] * 4 + [b"", memoryview(b"tail")]
            await client.send(b"buffers", b"echo next")
            await server.until(lambda: server.receiver.seen == [b"buffers"])
            assert await other.ask(b"echo quick") == b"echo quick"
            server.receiver.buffers = []
            del page
            assert gone() is not None
            assert b"echo next" not in server.receiver.seen
            assert await client.receive() == expected
            assert await client.receive() == b"echo next"
            assert gone() is None

    run(main())


def test_answers_of_many_pieces_are_sent_in_bounded_calls(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            server.receiver.buffers = [b"%07d\n" % number for number in range(5_000)]
            assert await client.ask(b"buffers") == b"".join(server.receiver.buffers)
            assert await client.ask(b"echo still there") == b"echo still there"

    run(main())


def test_leaving_amid_a_long_answer_frees_it(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect(buffer_bytes=4096)
            page = Page(bytes(8_000_000))
            gone = weakref.ref(page)
            server.receiver.buffers = [memoryview(page)]
            del page
            await client.send(b"buffers")
            await server.until(lambda: server.receiver.seen == [b"buffers"])
            server.receiver.buffers = []
            client.close()
            await server.until(lambda: server.network.connection_count == 0)
            assert gone() is None

    run(main())


@pytest.mark.parametrize(
    ("request_bytes", "reason"),
    [
        pytest.param(struct.pack(">i", 6) + b"refuse", "key 1) v2: refused", id="refused"),
        pytest.param(struct.pack(">i", 11) + b"wait-refuse", "v2: refused late", id="late"),
        pytest.param(struct.pack(">i", -5), "-5", id="negative size"),
        pytest.param(struct.pack(">i", 10_000_001), "10000001", id="too large"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", "1195725856", id="not Kafka at all"),
        pytest.param(struct.pack(">i", 4) + b"fail", "request handling failed", id="bug"),
        pytest.param(struct.pack(">i", 9) + b"wait-fail", "request handling failed", id="late bug"),
    ],
)
def test_bad_requests_close_their_connection_with_one_line(
    serving: Serving, run: Run, caplog: pytest.LogCaptureFixture, request_bytes: bytes, reason: str
) -> None:
    async def main() -> None:
        async with serving() as server:
            server.receiver.gate.set()
            good, bad = await server.connect(), await server.connect()
            port = bad.sock.getsockname()[1]
            await bad.send_raw(struct.pack(">i", 6) + b"echo 1" + request_bytes)
            # What was asked before is still answered.
            assert await bad.receive() == b"echo 1"
            assert await bad.closed_by_server()
            assert await good.ask(b"echo unharmed") == b"echo unharmed"
            lines = [record.getMessage() for record in caplog.records]
            assert len(lines) == 1
            assert f"from 127.0.0.1:{port} on PLAINTEXT" in lines[0]
            assert reason in lines[0]

    run(main())


def test_breaking_while_unread_data_waits_leaves_nothing_behind(serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            await client.send(b"wait-none 1", b"echo 2", *[b"none " + b"q" * 9_995] * 20)
            await server.until(lambda: server.receiver.waiting == 1)
            # Nobody reads any more, so the end is only seen when the answer is sent.
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            server.receiver.gate.set()
            await server.until(lambda: server.network.connection_count == 0)
            # The next connection gets the same file descriptor, and must be its only owner.
            again = await server.connect()
            assert await again.ask(b"echo again") == b"echo again"
            assert server.network.connection_count == 1

    run(main())


def test_leaving_while_requests_are_still_queued_cancels_the_one_that_waits(
    serving: Serving, run: Run
) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            await client.send(*[b"none"] * 500, b"wait 1", b"echo never")
            client.close()
            await server.until(lambda: server.network.connection_count == 0)
            await server.until(lambda: server.receiver.waiting == 0)
            assert b"echo never" not in server.receiver.seen

    run(main())


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(struct.pack(">i", 32) + b"half", id="half a frame"),
        pytest.param(struct.pack(">i", 6) + b"wait 1", id="a request that waits"),
        pytest.param(struct.pack(">i", 6) + b"none 1", id="a request without an answer"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_reset_right_after_data_closes_the_connection(
    serving: Serving, run: Run, sent: bytes
) -> None:
    """Both are there before the loop looks: libuv then calls back only once."""

    async def main() -> None:
        async with serving() as server:
            for _ in range(5):
                with socket.create_connection(server.network.addresses["PLAINTEXT"]) as client:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.sendall(sent)
            other = await server.connect()
            assert await other.ask(b"echo 1") == b"echo 1"
            await server.until(lambda: server.network.connection_count == 1)

    run(main())
