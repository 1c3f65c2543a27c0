"""Listeners with TLS, on both event loops, with asyncio's and OpenSSL's own clients."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.network.context import ANONYMOUS, ConnectionInfo
from moldau.broker.network.security import tls_layer
from moldau.broker.network.security.listeners import SecuredListener, listener_security
from moldau.broker.network.server import SocketNetwork
from moldau.config.errors import ConfigError
from moldau.security import server_contexts
from support.certificates import Authority, Identity

Run = Callable[[Coroutine[Any, Any, None]], None]
RULE = "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is not on this machine")
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Identity:
    return authority.issue("server", "/O=Org/CN=broker")


@pytest.fixture(scope="module")
def duke(authority: Authority) -> Identity:
    return authority.issue("duke", "/C=US/O=Org/OU=ServiceUsers/CN=Duke")


def settings_of(server: Identity, authority: Authority, **more: str) -> dict[str, Any]:
    values: dict[str, Any] = {name: key.default for name, key in BROKER_KEYS.items()}
    given = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server.pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.principal.mapping.rules": RULE,
    }
    given |= {name.replace("_", "."): text for name, text in more.items()}
    return values | {name: BROKER_KEYS[name].parse(text) for name, text in given.items()}


def client_tls(authority: Authority, own: Identity | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


class Peer:
    """A client by asyncio's streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *payloads: bytes) -> None:
        self.writer.write(b"".join(struct.pack(">i", len(each)) + each for each in payloads))

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def ask(self, payload: bytes) -> bytes:
        self.send(payload)
        return await self.receive()


class Stage:
    def __init__(self, network: SocketNetwork, receiver: Any, security: Any) -> None:
        self.network = network
        self.receiver = receiver
        self.security = security
        self.peers: list[Peer] = []

    @property
    def port(self) -> int:
        return self.network.addresses["SECURE"][1]

    async def connect(self, tls: ssl.SSLContext) -> Peer:
        peer = Peer(*await asyncio.open_connection("localhost", self.port, ssl=tls))
        self.peers.append(peer)
        return peer


@asynccontextmanager
async def secured(
    kit: Any, settings: dict[str, Any], client_auth: str = "none", **limits: Any
) -> AsyncIterator[Stage]:
    security = listener_security("SECURE", "SSL", settings, client_auth=client_auth)
    listener = kit.ListenerSpec("SECURE", security_protocol="SSL")
    network = SocketNetwork((listener,), kit.Settings(**limits), security={"SECURE": security})
    receiver = kit.ScriptReceiver()
    await network.start(receiver)
    stage = Stage(network, receiver, security)
    try:
        async with asyncio.timeout(60):
            yield stage
    finally:
        for peer in stage.peers:
            peer.writer.transport.abort()
        await network.stop(grace_s=1)
        assert network.connection_count == 0


@pytest.fixture
def kit() -> Any:
    from types import SimpleNamespace

    from . import conftest

    return SimpleNamespace(
        ListenerSpec=conftest.ListenerSpec,
        Settings=conftest.Settings,
        ScriptReceiver=conftest.ScriptReceiver,
    )


def test_requests_of_all_sizes_pass(
    kit: Any, run: Run, server: Identity, authority: Authority
) -> None:
    """A record holds 16 KB; the receive buffers of both layers are larger and smaller."""

    async def main() -> None:
        async with secured(kit, settings_of(server, authority)) as stage:
            peer = await stage.connect(client_tls(authority))
            for size in (1, 16_384, 16_385, 300_000, 1 << 20, 5_000_000):
                request = b"x" * size
                assert await peer.ask(request) == request
            # Many small requests in one record, and many records at once.
            payloads = [b"%d" % number for number in range(5_000)]
            peer.send(*payloads)
            assert [await peer.receive() for _ in payloads] == payloads
            assert stage.receiver.connections[0].principal == ANONYMOUS

    run(main())


def test_a_client_that_reads_late_gets_everything(
    kit: Any, run: Run, server: Identity, authority: Authority
) -> None:
    async def main() -> None:
        async with secured(
            kit, settings_of(server, authority), socket_send_buffer_bytes=20_000
        ) as stage:
            peer = await stage.connect(client_tls(authority))
            whole = os.urandom(8_000_000)
            stage.receiver.buffers = [
                whole[:10], whole[10:5_000], memoryview(whole)[5_000:6_000_000], whole[6_000_000:]
            ]  # fmt: skip
            peer.send(b"buffers", b"after")
            await asyncio.sleep(0.05)
            assert await peer.receive() == whole
            assert await peer.receive() == b"after"

    run(main())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_principal_is_that_of_the_certificate(
    version: ssl.TLSVersion,
    kit: Any,
    run: Run,
    server: Identity,
    duke: Identity,
    authority: Authority,
) -> None:
    async def main() -> None:
        async with secured(kit, settings_of(server, authority), "requested") as stage:
            known, unknown = client_tls(authority, duke), client_tls(authority)
            known.maximum_version = unknown.maximum_version = version
            for tls, name in ((known, "User:Duke"), (unknown, ANONYMOUS)):
                peer = await stage.connect(tls)
                assert await peer.ask(b"hello") == b"hello"
                assert stage.receiver.connections[-1].principal == name

    run(main())


def test_a_required_certificate_is_required(
    kit: Any,
    run: Run,
    server: Identity,
    duke: Identity,
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stranger = Authority(tmp_path, "Other CA").issue("stranger", "/CN=Stranger")

    async def main() -> None:
        async with secured(kit, settings_of(server, authority), "required") as stage:
            for own in (None, stranger):
                with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                    await (await stage.connect(client_tls(authority, own))).ask(b"hello")
            assert stage.receiver.seen == []
            peer = await stage.connect(client_tls(authority, duke))
            assert await peer.ask(b"hello") == b"hello"

    run(main())
    failures = [each for each in caplog.messages if "SSL handshake failed" in each]
    assert len(failures) == 2
    assert "peer did not return a certificate (ssl.client.auth is required)" in failures[0]
    assert "certificate was rejected" in failures[1]


def test_a_certificate_that_names_no_user_is_turned_away(
    kit: Any, run: Run, server: Identity, duke: Identity, authority: Authority
) -> None:
    async def main() -> None:
        settings = settings_of(
            server, authority, ssl_principal_mapping_rules="RULE:^CN=(.*?),OU=Others$/$1/"
        )
        async with secured(kit, settings, "required") as stage:
            peer = await stage.connect(client_tls(authority, duke))
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)):
                await peer.ask(b"hello")
            assert stage.receiver.seen == []

    run(main())


def test_what_is_not_tls_is_turned_away(
    kit: Any,
    run: Run,
    server: Identity,
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with secured(kit, settings_of(server, authority)) as stage:
            for sent in (struct.pack(">ihhi", 10, 18, 0, 1) + b"\0\0", b"GET / HTTP/1.1\r\n\r\n"):
                reader, writer = await asyncio.open_connection("localhost", stage.port)
                writer.write(sent)
                # An alert, at most, and then the end.
                assert len(await reader.read()) < 20
                writer.close()
            assert stage.receiver.seen == []

    run(main())
    assert sum("does not use TLS" in each for each in caplog.messages) == 2


def test_a_handshake_has_a_time_limit(
    kit: Any,
    run: Run,
    server: Identity,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Enough for a handshake on a busy machine.
    monkeypatch.setattr(tls_layer, "HANDSHAKE_TIMEOUT_S", 1.5)

    async def main() -> None:
        async with secured(kit, settings_of(server, authority)) as stage:
            peer = await stage.connect(client_tls(authority))
            reader, writer = await asyncio.open_connection("localhost", stage.port)
            writer.write(b"\x16\x03\x01")
            assert await reader.read() == b""
            writer.close()
            # Its own time, which began earlier, is over too.
            assert await peer.ask(b"still here") == b"still here"

    run(main())
    assert sum("was not done within" in each for each in caplog.messages) == 1


def test_a_crowd_begins_its_handshakes_a_few_in_each_turn_of_the_loop(
    kit: Any, run: Run, server: Identity, authority: Authority
) -> None:
    """Whoever is connected waits for a few signatures at most, and everybody gets in."""
    count, limit = 20, tls_layer.HANDSHAKES_PER_TURN_MAX

    async def main() -> None:
        settings = settings_of(server, authority)
        listener = SecuredListener("X", settings, client_auth="none", authenticator=None)
        crowd = []
        for _ in range(count):
            ours, theirs = socket.socketpair()
            for each in (ours, theirs):
                each.setblocking(False)
            layer, _ = listener.open(ours, ConnectionInfo(), kit.ScriptReceiver())
            outgoing = ssl.MemoryBIO()
            client = client_tls(authority).wrap_bio(
                ssl.MemoryBIO(), outgoing, server_hostname="localhost"
            )
            with suppress(ssl.SSLWantReadError):
                client.do_handshake()
            theirs.send(outgoing.read())
            crowd.append((layer, theirs))

        def turn() -> int:
            """How many have their certificate after all sockets were looked at once."""
            for layer, _ in crowd:
                with suppress(BlockingIOError):
                    layer.recv_into(memoryview(bytearray(100)))
            answered = 0
            for _, theirs in crowd:
                with suppress(BlockingIOError):
                    answered += bool(theirs.recv(1, socket.MSG_PEEK))
            return answered

        assert turn() == limit
        assert turn() == limit, "the loop has not turned"
        found = [limit]
        while found[-1] < count:
            await asyncio.sleep(0)
            found.append(turn())
        assert found == [min(limit * number, count) for number in range(1, len(found) + 1)]
        for layer, theirs in crowd:
            layer.close()
            theirs.close()

    run(main())


def test_a_crowd_gets_in_while_others_work(
    kit: Any, run: Run, server: Identity, authority: Authority
) -> None:
    async def main() -> None:
        async with secured(kit, settings_of(server, authority)) as stage:
            tls = client_tls(authority)
            early = await stage.connect(tls)
            late = asyncio.gather(*(stage.connect(tls) for _ in range(50)))
            while not late.done():
                assert await early.ask(b"meanwhile") == b"meanwhile"
            for number, peer in enumerate(late.result()):
                assert await peer.ask(b"%d" % number) == b"%d" % number

    run(main())


def test_the_end_of_a_stream_is_said(
    kit: Any, run: Run, server: Identity, authority: Authority
) -> None:
    """A client knows that nothing was cut off, and the server notices a client that leaves."""

    async def main() -> None:
        async with secured(kit, settings_of(server, authority)) as stage:
            loop = asyncio.get_running_loop()
            tls = client_tls(authority)

            def leave() -> bytes:
                raw = socket.create_connection(("localhost", stage.port))
                with tls.wrap_socket(
                    raw, server_hostname="localhost", suppress_ragged_eofs=False
                ) as sock:
                    sock.sendall(struct.pack(">i", 6) + b"refuse")
                    return sock.recv(100)

            assert await loop.run_in_executor(None, leave) == b""
            peer = await stage.connect(tls)
            assert await peer.ask(b"hello") == b"hello"
            assert stage.network.connection_count == 1
            peer.writer.close()
            while stage.network.connection_count:  # noqa: ASYNC110 - on the other side
                await asyncio.sleep(0.001)

    run(main())


def test_new_files_are_used_for_new_connections(
    kit: Any,
    run: Run,
    server: Identity,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(server_contexts, "CHECK_INTERVAL_S", 0.0)
    store = tmp_path / "store.pem"
    store.write_text(server.pem.read_text())
    renewed = authority.issue("renewed", "/O=Org/CN=broker")
    other = authority.issue("other", "/O=Org/CN=other")

    async def main() -> None:
        settings = settings_of(server, authority) | {"ssl.keystore.location": str(store)}
        async with secured(kit, settings) as stage:

            async def number() -> str:
                peer = await stage.connect(client_tls(authority))
                await peer.ask(b"hello")
                return str(peer.writer.get_extra_info("peercert")["serialNumber"])

            before = await number()
            old = stage.peers[0]
            store.write_text(renewed.pem.read_text())
            after = await number()
            assert after != before
            # Neither a broken file nor another name takes its place.
            store.write_text("half a file")
            assert await number() == after
            store.write_text(other.pem.read_text())
            assert await number() == after
            stage.security.update(settings | {"ssl.allow.dn.changes": True}, client_auth="none")
            assert await number() != after
            assert await old.ask(b"as before") == b"as before"

    run(main())
    assert any("0 private keys" in each for each in caplog.messages)
    assert any("DistinguishedName does not match" in each for each in caplog.messages)


def test_what_was_encrypted_is_sent_once_whatever_makes_room(
    kit: Any, run: Run, server: Identity, authority: Authority
) -> None:
    """A message of TLS itself may flush a response that the kernel had not taken."""

    async def main() -> None:
        settings = settings_of(server, authority)
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10_000)
        listener = SecuredListener("X", settings, client_auth="none", authenticator=None)
        layer, _ = listener.open(ours, ConnectionInfo(), kit.ScriptReceiver())
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_tls(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")

        def pump() -> None:
            if outgoing.pending:
                theirs.send(outgoing.read())
            with suppress(BlockingIOError):
                layer.recv_into(memoryview(bytearray(100)))
            with suppress(BlockingIOError):
                while True:
                    incoming.write(theirs.recv(65_536))

        for _ in range(5):
            with suppress(ssl.SSLWantReadError):
                client.do_handshake()
            pump()
        sent = os.urandom(200_000)
        assert layer.sendmsg([sent]) == 0
        received = b""
        while not (flushed := layer._flush()) or incoming.pending:  # type: ignore[attr-defined]
            pump()
            with suppress(ssl.SSLWantReadError):
                while True:
                    received += client.read(65_536)
        assert flushed
        assert layer.sendmsg([sent]) == len(sent)
        pump()
        with suppress(ssl.SSLWantReadError):
            while True:
                received += client.read(65_536)
        assert received == sent
        layer.close()
        theirs.close()

    run(main())


def test_garbage_ends_its_own_connection_only(
    kit: Any, run: Run, server: Identity, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """Random bytes and spoiled handshakes, then spoiled records on a connection that was good."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)

    def spoiled(data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        return bytes(changed[: chance.randrange(1, len(changed) + 1)])

    async def attack(port: int, tls: ssl.SSLContext) -> None:
        reader, writer = await asyncio.open_connection("localhost", port)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
        first = chance.random() < 0.5
        try:
            while True:
                try:
                    session.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    data = outgoing.read()
                    if first and data:
                        data = spoiled(data) if chance.random() < 0.8 else chance.randbytes(500)
                        writer.write(data)
                        return
                    writer.write(data)
                    received = await reader.read(65_536)
                    if not received:
                        return
                    incoming.write(received)
            session.write(b"\0\0\0\4echo" * 50)
            writer.write(spoiled(outgoing.read()))
            await writer.drain()
        except (ssl.SSLError, ConnectionError):
            pass
        finally:
            writer.close()

    async def main() -> None:
        async with secured(kit, settings_of(server, authority)) as stage:
            tls = client_tls(authority)
            good = await stage.connect(tls)
            for _ in range(25):
                await asyncio.gather(*(attack(stage.port, tls) for _ in range(8)))
                assert await good.ask(b"still here") == b"still here"
            while stage.network.connection_count > 1:  # noqa: ASYNC110 - on the other side
                await asyncio.sleep(0.001)

    run(main())
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_sasl_needs_an_authenticator(server: Identity, authority: Authority) -> None:
    settings = settings_of(server, authority)
    with pytest.raises(ConfigError, match="SASL_SSL needs an authenticator"):
        listener_security("X", "SASL_SSL", settings, client_auth="none")
    secured = listener_security(
        "X", "SASL_SSL", settings, client_auth="none", authenticator=lambda info, receiver: receiver
    )
    assert isinstance(secured, SecuredListener)


def test_settings_that_cannot_work_name_the_listener(
    server: Identity, authority: Authority
) -> None:
    broken = settings_of(server, authority) | {"ssl.keystore.location": None}
    with pytest.raises(ConfigError, match="listener X: A listener with SSL needs a certificate"):
        listener_security("X", "SSL", broken, client_auth="none")


def test_a_principal_builder_gets_the_name_of_the_certificate(
    kit: Any, run: Run, server: Identity, duke: Identity, authority: Authority
) -> None:
    async def main() -> None:
        async with secured(kit, settings_of(server, authority), "requested") as stage:
            stage.security.identify = lambda connection: f"Name:{connection.ssl_peer_name}"
            known = "Name:CN=Duke,OU=ServiceUsers,O=Org,C=US"
            for own, name in ((duke, known), (None, "Name:None")):
                peer = await stage.connect(client_tls(authority, own))
                assert await peer.ask(b"hello") == b"hello"
                assert stage.receiver.connections[-1].principal == name

    run(main())
