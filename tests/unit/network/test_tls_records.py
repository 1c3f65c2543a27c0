"""The loop over TLS records, compiled and as plain Python."""

from __future__ import annotations

import random
import shutil
import ssl
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import moldau.broker.network.security
from moldau.broker.network.security import _tls_records
from support.certificates import Authority
from support.plain import load_plain

PLAIN = load_plain(moldau.broker.network.security, "_tls_records")
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="the openssl command is not on this machine"
)


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    folder: Path = tmp_path_factory.mktemp("ca")
    authority = Authority(folder)
    identity = authority.issue("server", "/CN=broker")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(identity.certificate, identity.key)
    return server, ssl.create_default_context(cafile=str(authority.certificate))


class Session:
    """A server that gets what a client sends when the test says so."""

    def __init__(
        self,
        contexts: tuple[ssl.SSLContext, ssl.SSLContext],
        version: ssl.TLSVersion,
        form: ModuleType,
    ) -> None:
        server_tls, client_tls = contexts
        self.incoming, self.sent, to_client = ssl.MemoryBIO(), ssl.MemoryBIO(), ssl.MemoryBIO()
        server = server_tls.wrap_bio(self.incoming, to_client, server_side=True)
        client_tls.minimum_version = client_tls.maximum_version = version
        self.client = client_tls.wrap_bio(to_client, self.sent, server_hostname="localhost")
        waiting = [self.client, server]
        while waiting:
            for side in tuple(waiting):
                try:
                    side.do_handshake()
                    waiting.remove(side)
                except ssl.SSLWantReadError:
                    self.incoming.write(self.sent.read())
        assert self.client.version() == version.name.replace("_", ".")
        inner: Any = server
        self._read = inner._sslobj.read
        self._form = form

    def read(self, buffer: memoryview) -> tuple[int, bool]:
        found: tuple[int, bool] = self._form.read_records(self._read, self.incoming, buffer)
        return found


@pytest.fixture(params=["installed", "plain"])
def form(request: pytest.FixtureRequest) -> ModuleType:
    return _tls_records if request.param == "installed" else PLAIN


@pytest.fixture(params=VERSIONS, ids=lambda version: version.name)
def session(
    request: pytest.FixtureRequest,
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
    form: ModuleType,
) -> Session:
    return Session(contexts, request.param, form)


@pytest.mark.parametrize("seed", range(5))
def test_records_of_all_sizes_pass_whatever_arrives_at_once(session: Session, seed: int) -> None:
    chance = random.Random(seed)
    written = [
        chance.randbytes(chance.choice((1, 10, 1_000, 16_384, chance.randrange(1, 40_000))))
        for _ in range(100)
    ]
    for piece in written:
        session.client.write(piece)
    ciphertext = session.sent.read()
    found = bytearray()
    whole = memoryview(bytearray(70_000))
    position = 0
    while position < len(ciphertext):
        arriving = chance.choice((1, 100, 5_000, 60_000))
        session.incoming.write(ciphertext[position : position + arriving])
        position += arriving
        start, size = chance.randrange(1_000), chance.choice((1, 7, 999, 16_384, 65_536))
        buffer = whole[start : start + size]
        before = bytes(whole)
        count, ended = session.read(buffer)
        # Only what is said to be there has changed, also in the view itself.
        assert bytes(whole[:start]) == before[:start]
        assert bytes(whole[start + count :]) == before[start + count :]
        assert len(buffer) == size
        assert not ended
        found += buffer[:count]
    buffer = whole[:65_536]
    while (count := session.read(buffer)[0]) > 0:
        found += buffer[:count]
    assert found == b"".join(written)


def test_a_record_that_is_not_complete_is_waited_for(session: Session) -> None:
    session.client.write(b"first")
    session.client.write(b"second")
    ciphertext = session.sent.read()
    buffer = memoryview(bytearray(100))
    session.incoming.write(ciphertext[:3])
    assert session.read(buffer) == (0, False)
    session.incoming.write(ciphertext[3:-1])
    assert session.read(buffer) == (5, False)
    assert bytes(buffer[:5]) == b"first"
    session.incoming.write(ciphertext[-1:])
    assert session.read(buffer) == (6, False)
    assert bytes(buffer[:6]) == b"second"


def test_the_end_comes_with_what_was_sent_before_it(session: Session) -> None:
    session.client.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        session.client.unwrap()
    session.incoming.write(session.sent.read())
    buffer = memoryview(bytearray(100))
    assert session.read(buffer) == (4, True)
    assert session.read(buffer) == (0, True)


def test_a_changed_record_is_an_error(session: Session) -> None:
    session.client.write(b"right")
    session.client.write(b"wrong")
    ciphertext = bytearray(session.sent.read())
    ciphertext[-1] ^= 1
    session.incoming.write(ciphertext)
    with pytest.raises(ssl.SSLError, match="DECRYPTION_FAILED_OR_BAD_RECORD_MAC"):
        session.read(memoryview(bytearray(100)))


def test_other_buffers_than_memoryviews_are_filled_as_well(session: Session) -> None:
    for _ in range(3):
        session.client.write(b"abc")
    session.incoming.write(session.sent.read())
    data: Any = bytearray(10)
    assert session.read(data) == (9, False)
    assert data == b"abcabcabc\0"
