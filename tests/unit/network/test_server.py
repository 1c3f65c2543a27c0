"""Listeners, limits, idle clients, starting and stopping."""

from __future__ import annotations

import asyncio
import errno
import selectors
import socket
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.network import server as server_module
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver
from moldau.broker.network.server import ListenError, SocketNetwork
from moldau.broker.network.transport_layer import Plaintext, TransportLayer

Serving = Any
Run = Any


@pytest.fixture
def kit(request: pytest.FixtureRequest) -> ModuleType:
    """The classes of conftest.py, which importlib mode gives no importable name."""
    plugin = request.config.pluginmanager.get_plugin(str(request.path.parent / "conftest.py"))
    assert isinstance(plugin, ModuleType)
    return plugin


def test_every_listener_has_its_own_name_and_port(kit: Any, serving: Serving, run: Run) -> None:
    async def main() -> None:
        names = ("PLAINTEXT", "CONTROLLER")
        async with serving(listeners=tuple(kit.ListenerSpec(name) for name in names)) as server:
            ports = {name: port for name, (_, port) in server.network.addresses.items()}
            assert set(ports) == set(names)
            assert 0 not in ports.values()
            for name in names:
                client = await server.connect(name)
                await client.ask(b"echo")
                info = server.receiver.connections[-1]
                assert (info.listener_name, info.client_host) == (name, "127.0.0.1")
                assert info.principal == "User:ANONYMOUS"
                port = client.sock.getsockname()[1]
                assert info.peer == f"127.0.0.1:{port}"
                assert info.connection_id.startswith(f"127.0.0.1:{ports[name]}-127.0.0.1:{port}-")

    run(main())


def test_no_host_means_every_address_and_clients_keep_theirs(
    kit: Any, serving: Serving, run: Run
) -> None:
    async def main() -> None:
        async with serving(listeners=(kit.ListenerSpec(host=""),)) as server:
            _, port = server.network.addresses["PLAINTEXT"]
            sock = socket.socket()
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
            client = kit.Client(sock)
            await client.ask(b"echo")
            assert server.receiver.connections[-1].client_host == "127.0.0.1"
            client.close()

    run(main())


def test_a_taken_port_is_named(kit: Any, run: Run) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            free = kit.ListenerSpec("FIRST")
            network = SocketNetwork((free, kit.ListenerSpec("SECOND", port=port)), kit.Settings())
            with pytest.raises(ListenError, match=rf"SECOND.*127\.0\.0\.1:{port}.*in use"):
                await network.start(kit.ScriptReceiver())
            assert network.addresses == {}

    run(main())


def test_an_unknown_security_protocol_is_named(kit: Any, run: Run) -> None:
    async def main() -> None:
        listener = kit.ListenerSpec("X", security_protocol="SASL_SSL")
        network = SocketNetwork((listener,), kit.Settings())
        with pytest.raises(ListenError, match="X: SASL_SSL is not set up"):
            await network.start(kit.ScriptReceiver())

    run(main())


def test_too_many_from_one_address_are_turned_away(
    kit: Any, serving: Serving, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        settings = kit.Settings(
            max_connections_per_ip=1, max_connections_per_ip_overrides={"127.0.0.1": 2}
        )
        async with serving(settings) as server:
            clients = [await server.connect() for _ in range(2)]
            for client in clients:
                await client.ask(b"echo")
            assert await (await server.connect()).closed_by_server()
            assert "127.0.0.1" in caplog.text
            assert "max.connections.per.ip" in caplog.text
            clients[0].close()
            await server.until(lambda: server.network.connection_count == 1)
            assert await (await server.connect()).ask(b"echo") == b"echo"

    run(main())


def test_beyond_max_connections_clients_wait_for_their_turn(
    kit: Any, serving: Serving, run: Run
) -> None:
    async def main() -> None:
        async with serving(kit.Settings(max_connections=2)) as server:
            first, second = await server.connect(), await server.connect()
            await first.ask(b"echo")
            await second.ask(b"echo")
            third = await server.connect()
            answer = asyncio.ensure_future(third.ask(b"echo third"))
            await asyncio.wait([answer], timeout=0.1)
            assert server.network.connection_count == 2
            assert not answer.done()
            first.close()
            assert await answer == b"echo third"
            fourth = await server.connect()
            answer = asyncio.ensure_future(fourth.ask(b"echo fourth"))
            await asyncio.wait([answer], timeout=0.05)
            server.network.update_settings(kit.Settings(max_connections=5))
            assert await answer == b"echo fourth"

    run(main())


def test_a_listener_has_its_own_limit(kit: Any, serving: Serving, run: Run) -> None:
    async def main() -> None:
        settings = kit.Settings(listener_max_connections={"PLAINTEXT": 1})
        async with serving(settings) as server:
            first, second = await server.connect(), await server.connect()
            await first.ask(b"echo")
            answer = asyncio.ensure_future(second.ask(b"echo second"))
            await asyncio.wait([answer], timeout=0.1)
            assert not answer.done()
            first.close()
            assert await answer == b"echo second"

    run(main())


def test_a_listener_beyond_its_rate_pauses_and_then_accepts(
    kit: Any, serving: Serving, run: Run
) -> None:
    async def main() -> None:
        settings = kit.Settings(
            max_connection_creation_rate=10, quota_window_num=2, quota_window_size_seconds=1
        )
        async with serving(settings) as server:
            clients = [await server.connect() for _ in range(15)]
            assert [await each.ask(b"echo") for each in clients] == [b"echo"] * 15

    run(main())


def test_no_request_begins_while_others_hold_too_much(kit: Any, serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving(kit.Settings(queued_max_request_bytes=1000)) as server:
            slow, quick = await server.connect(), await server.connect()
            request = kit.framed(b"echo " + b"x" * 5000)
            await slow.send_raw(request[:2000])
            await server.until(lambda: server.network.pool.full)
            answer = asyncio.ensure_future(quick.ask(b"echo quick"))
            await asyncio.wait([answer], timeout=0.1)
            assert not answer.done()
            await slow.send_raw(request[2000:])
            assert await slow.receive() == b"echo " + b"x" * 5000
            assert await answer == b"echo quick"

    run(main())


def test_a_client_that_leaves_gives_back_what_it_held(kit: Any, serving: Serving, run: Run) -> None:
    async def main() -> None:
        async with serving(kit.Settings(queued_max_request_bytes=1000)) as server:
            slow, quick = await server.connect(), await server.connect()
            await slow.send_raw(kit.framed(b"echo " + b"x" * 5000)[:2000])
            await server.until(lambda: server.network.pool.full)
            answer = asyncio.ensure_future(quick.ask(b"echo quick"))
            await asyncio.wait([answer], timeout=0.05)
            slow.close()
            assert await answer == b"echo quick"

    run(main())


def test_an_address_that_connects_too_often_is_disconnected(
    kit: Any, serving: Serving, run: Run
) -> None:
    async def main() -> None:
        settings = kit.Settings(quota_window_num=2)
        async with serving(settings) as server:
            server.network.update_address_rates(None, {"127.0.0.1": 2.0})
            clients = [await server.connect() for _ in range(2)]
            for client in clients:
                assert await client.ask(b"echo") == b"echo"
            assert await (await server.connect()).closed_by_server()
            server.network.update_address_rates(None, {})
            assert await (await server.connect()).ask(b"echo") == b"echo"

    run(main())


class ScarceSocket:
    """A listening socket that has no file descriptors left for a while."""

    def __init__(self, sock: socket.socket, failures: int) -> None:
        self._sock = sock
        self._failures = failures
        self.attempts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def accept(self) -> Any:
        self.attempts += 1
        if self._failures:
            self._failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._sock.accept()


def test_lack_of_descriptors_pauses_accepting_and_says_so(
    serving: Serving,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        monkeypatch.setattr(server_module, "ACCEPT_PAUSE_S", 0.05)
        async with serving() as server:
            listener = server.network._listeners[0]
            scarce = ScarceSocket(listener._sock, failures=2)
            monkeypatch.setattr(listener, "_sock", scarce)
            client = await server.connect()
            assert await client.ask(b"echo") == b"echo"
            assert caplog.text.count("open files") == 4  # twice, with the hint
            assert scarce.attempts < 8, "accepting spins"

    run(main())


def test_silent_clients_are_closed_and_talking_ones_are_not(
    kit: Any, serving: Serving, run: Run
) -> None:
    async def main() -> None:
        async with serving(kit.Settings(connections_max_idle_ms=1_500)) as server:
            silent, stuck, talking, waiting = [await server.connect() for _ in range(4)]
            await stuck.send_raw(b"\0\0")
            await waiting.send(b"wait 1")
            gone = asyncio.gather(silent.closed_by_server(), stuck.closed_by_server())
            while not gone.done():
                await talking.ask(b"echo")
                await asyncio.wait([gone], timeout=0.02)
            assert list(gone.result()) == [True, True]
            assert server.network.connection_count == 2
            server.receiver.gate.set()
            assert await waiting.receive() == b"wait 1"

    run(main())


def test_stopping_lets_the_running_request_end_and_takes_no_other(
    serving: Serving, run: Run
) -> None:
    async def main() -> None:
        async with serving() as server:
            idle, busy = await server.connect(), await server.connect()
            await idle.ask(b"echo")
            await busy.send(b"wait 1", b"echo never")
            await server.until(lambda: server.receiver.waiting == 1)
            address = server.network.addresses["PLAINTEXT"]
            stopping = asyncio.ensure_future(server.network.stop(grace_s=5))
            assert await idle.closed_by_server()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address).close()
            assert not stopping.done()
            server.receiver.gate.set()
            assert await busy.receive() == b"wait 1"
            assert await busy.closed_by_server()
            await stopping
            assert b"echo never" not in server.receiver.seen

    run(main())


def test_stopping_cancels_what_does_not_end(
    serving: Serving, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with serving() as server:
            client = await server.connect()
            await client.send(b"wait 1")
            await server.until(lambda: server.receiver.waiting == 1)
            await server.network.stop(grace_s=0.05)
            assert server.receiver.cancelled == 1
            assert await client.closed_by_server()
            assert "1 requests did not end" in caplog.text

    run(main())


@dataclass
class Upgrade:
    """A listener's security that knows its clients and sees every byte: what TLS and SASL need."""

    received: bytearray = field(default_factory=bytearray)

    def open(
        self, sock: socket.socket, connection: ConnectionInfo, receiver: FrameReceiver
    ) -> tuple[TransportLayer, FrameReceiver]:
        channel, _ = Plaintext().open(sock, connection, receiver)
        return Watched(channel, self.received), Authenticator(receiver)


class Watched:
    def __init__(self, channel: TransportLayer, received: bytearray) -> None:
        self._channel = channel
        self._received = received

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def recv_into(self, buffer: memoryview, /) -> int:
        count = self._channel.recv_into(buffer)
        self._received += buffer[:count]
        return count


class Authenticator:
    """The first frame is the user's name; what follows goes to the dispatcher."""

    def __init__(self, receiver: FrameReceiver) -> None:
        self._receiver = receiver
        self._known = False

    def is_pipelined(self, frame: memoryview) -> bool:
        return self._receiver.is_pipelined(frame)

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Any:
        if self._known:
            return self._receiver.dispatch(connection, frame)
        self._known = True
        connection.principal = f"User:{str(frame, 'utf-8')}"
        return b"\0\0\0\2ok"


def test_security_can_wrap_bytes_and_take_the_first_frames(kit: Any, run: Run) -> None:
    async def main() -> None:
        security = Upgrade()
        listener = kit.ListenerSpec("SECURE", security_protocol="WATCHED")
        network = SocketNetwork((listener,), kit.Settings(), security={"SECURE": security})
        receiver = kit.ScriptReceiver()
        await network.start(receiver)
        server = kit.Harness(network, receiver)
        client = await server.connect("SECURE")
        await client.send(b"alice", b"echo 1")
        assert await client.receive() == b"ok"
        assert await client.receive() == b"echo 1"
        assert receiver.seen == [b"echo 1"]
        assert receiver.connections[0].principal == "User:alice"
        assert b"alice" in security.received
        client.close()
        await network.stop(grace_s=1)

    run(main())


class Gated:
    """The security of a listener with a login, which is the first frame."""

    def open(
        self, sock: socket.socket, connection: ConnectionInfo, receiver: FrameReceiver
    ) -> tuple[TransportLayer, FrameReceiver]:
        connection.login_bytes_max = 100
        return sock, LoggedIn(receiver)


class LoggedIn(Authenticator):
    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Any:
        answer = super().dispatch(connection, frame)
        connection.logged_in()
        return answer


def test_a_login_has_a_time_limit_whatever_trickles_in(
    kit: Any, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("moldau.broker.network._connection.LOGIN_TIMEOUT_S", 0.5)

    async def main() -> None:
        listener = kit.ListenerSpec("SECURE", security_protocol="GATED")
        network = SocketNetwork((listener,), kit.Settings(), security={"SECURE": Gated()})
        receiver = kit.ScriptReceiver()
        await network.start(receiver)
        server = kit.Harness(network, receiver)
        silent, trickling, known = [await server.connect("SECURE") for _ in range(3)]
        await known.send(b"alice")
        assert await known.receive() == b"ok"
        gone = asyncio.gather(silent.closed_by_server(), trickling.closed_by_server())
        while not gone.done():
            with suppress(ConnectionError):
                await trickling.send_raw(b"\0")
            await asyncio.wait([gone], timeout=0.2)
        assert list(gone.result()) == [True, True]
        await known.send(b"echo " + b"x" * 1000)
        assert len(await known.receive()) == 1005
        assert network.connection_count == 1
        known.close()
        await network.stop(grace_s=1)

    run(main())
    assert caplog.text.count("no login within 0.5 s") == 2


def test_settings_that_change_during_the_start_let_nobody_in_early(kit: Any) -> None:
    """A broker takes its dynamic configuration between binding and serving."""

    async def scenario() -> None:
        network = SocketNetwork((kit.ListenerSpec("X"),), kit.Settings())
        await network.bind()
        client = socket.create_connection(network.addresses["X"])
        network.update_settings(kit.Settings())
        await asyncio.sleep(0)
        assert network.connection_count == 0
        await network.start(kit.ScriptReceiver())
        async with asyncio.timeout(60):
            while network.connection_count == 0:  # noqa: ASYNC110
                await asyncio.sleep(0)
        client.close()
        await network.stop(1)

    asyncio.run(scenario())


def test_clients_in_a_burst_wait_in_the_backlog(kit: Any, run: Run) -> None:
    """A client that finds it full would wait for TCP's next try, a second later."""
    count = 500

    async def script() -> None:
        settings = BrokerConfig.from_properties(
            {
                "process.roles": "broker",
                "node.id": "1",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
                "listeners": "PLAINTEXT://127.0.0.1:0",
            }
        ).network
        network = SocketNetwork((kit.ListenerSpec(),), settings)
        await network.bind()
        (address,) = network.addresses.values()
        with ExitStack() as stack, selectors.DefaultSelector() as selector:
            for _ in range(count):
                client = stack.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(address)
                selector.register(client, selectors.EVENT_WRITE)
            # Nobody accepts: this thread is here.
            while selector.get_map() and (ready := selector.select(5.0)):
                for key, _ in ready:
                    selector.unregister(key.fileobj)
            assert not selector.get_map()
        await network.stop(1.0)

    run(script())
