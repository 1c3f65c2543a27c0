"""What is sent: case number N of a seed is always the same bytes on the same listener.

A case is a connection's next frame, sent in one of several ways. Those before a login, and those
that end a connection, have it to themselves.
"""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fuzz.mutations import flipped, lying_size, spoiled
from fuzz.samples import SAMPLES_PER_VERSION, sample, served
from moldau.wire.apis import API_BY_KEY, Api, ApiKey
from moldau.wire.framing import encode_request_frame
from moldau.wire.messages import (
    ApiVersionsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)


class Place(Enum):
    """A listener and how far the connection is."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    BEFORE_TLS = "SSL, before the handshake"
    IN_TLS = "SSL, records changed after the handshake"
    BEFORE_LOGIN = "SASL_PLAINTEXT, before the login"
    LOGGED_IN = "SASL_PLAINTEXT, logged in"
    CONTROLLER_BEFORE_LOGIN = "CONTROLLER, before the login"
    CONTROLLER_LOGGED_IN = "CONTROLLER, logged in"


class Manner(Enum):
    WHOLE = "whole"
    BYTE_BY_BYTE = "byte by byte"
    HALF = "half, then closed"


@dataclass(frozen=True, slots=True)
class Case:
    index: int
    place: Place
    manner: Manner
    what: str
    before: tuple[bytes, ...]
    """Sound frames that come first, each answered."""
    data: bytes


#: How often each is chosen.
_PLACES: Final = {
    Place.PLAINTEXT: 32,
    Place.SSL: 5,
    Place.BEFORE_TLS: 6,
    Place.IN_TLS: 5,
    Place.BEFORE_LOGIN: 16,
    Place.LOGGED_IN: 24,
    Place.CONTROLLER_BEFORE_LOGIN: 4,
    Place.CONTROLLER_LOGGED_IN: 8,
}
_CLIENT_IDS: Final = (b"fuzz", b"", None, b"\x00", b"\xff\xff", b"x" * 300)
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_TOKENS: Final = (
    b"\x00mallory\x00mallory-secret",
    b"admin\x00mallory\x00mallory-secret",
    b"n,,n=sam,r=0123456789abcdef",
    b"n,,n=nobody,r=0123456789abcdef,tokenauth=true",
    b"c=biws,r=0123456789abcdef,p=" + b"A" * 44,
    b"n,,\x01auth=Bearer e30.e30.\x01\x01",
    b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.\x01\x01",
    b"\x01",
    b"",
)


def case(seed: int, index: int) -> Case:
    chance = random.Random(seed * 1_000_003 + index)
    place = chance.choices(list(_PLACES), list(_PLACES.values()))[0]
    if place is Place.BEFORE_TLS:
        what, data = _records(chance)
        manner = chance.choices(list(Manner), (90, 1, 9))[0]
        return Case(index, place, manner, what, (), data)
    before: tuple[bytes, ...] = ()
    if place in (Place.BEFORE_LOGIN, Place.CONTROLLER_BEFORE_LOGIN) and chance.random() < 0.8:
        before, what, data = _login(chance)
    else:
        what, data = _request(place, chance)
    manner = chance.choices(list(Manner), (92, 1, 7))[0]
    if manner is Manner.BYTE_BY_BYTE and len(data) > 400:
        manner = Manner.WHOLE
    if manner is Manner.HALF:
        data = data[: chance.randrange(1, max(2, len(data)))]
    return Case(index, place, manner, what, before, data)


@functools.cache
def _served(listener: str) -> dict[ApiKey, list[tuple[Api, int]]]:
    found: dict[ApiKey, list[tuple[Api, int]]] = {}
    for api, version in served(listener):
        found.setdefault(api.key, []).append((api, version))
    return found


def _request(place: Place, chance: random.Random) -> tuple[str, bytes]:
    if chance.random() < 0.06:
        junk = chance.randbytes(chance.choice((0, 1, 3, 7, 10, 40, 3_000)))
        return "bytes", framed(junk) if chance.random() < 0.7 else junk or b"\x00"
    controller = place in (Place.CONTROLLER_BEFORE_LOGIN, Place.CONTROLLER_LOGGED_IN)
    # Every API as often as any other, whatever number of versions it has.
    apis = _served("controller" if controller else "broker")
    api, version = chance.choice(apis[chance.choice(list(apis))])
    tokens = sample(api, version, chance.randrange(SAMPLES_PER_VERSION))
    way = chance.random()
    name = f"{api.name} v{version}"
    if way < 0.08:
        # A sound body, or one of another API, after an unsound header.
        body = b"".join(token.data for token in tokens)
        return f"{name}, header", framed(_header(api, version, chance, sound=False) + body)
    payload = _header(api, version, chance, sound=True) + spoiled(tokens, chance)
    if way < 0.14:
        return f"{name}, size", lying_size(payload, chance)
    return name, framed(payload)


def _header(api: Api, version: int, chance: random.Random, *, sound: bool) -> bytes:
    key, client_id, tags = int(api.key), b"fuzz", b"\x00" if version >= api.flexible_from else b""
    length = len(client_id)
    if not sound:
        odd_keys = (key, chance.choice(list(API_BY_KEY)), -1, 999, 32_767)
        key = chance.choice(odd_keys)
        version = chance.choice((version, version + 1, -1, 0, 99, 32_767))
        given = chance.choice(_CLIENT_IDS)
        client_id = given or b""
        length = chance.choice((-1 if given is None else len(client_id), -2, 32_767, 5))
        tags = chance.choice((tags, b"\xff\xff\xff\xff\x0f", b"\x01\x00\x00", b"\x02\x00", b"\x80"))
    return struct.pack(">hhih", key, version, chance.getrandbits(31), length) + client_id + tags


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def sound(key: ApiKey, version: int, request: object) -> bytes:
    return encode_request_frame(API_BY_KEY[key], version, 1, "fuzz", request)  # type: ignore[arg-type]


def _login(chance: random.Random) -> tuple[tuple[bytes, ...], str, bytes]:
    """Frames of a login up to one that is wrong, or comes at the wrong time."""
    before: list[bytes] = []
    if chance.random() < 0.3:
        versions = ApiVersionsRequest(client_software_name="f", client_software_version="1")
        before.append(sound(ApiKey.API_VERSIONS, 4, versions))
    mechanism = chance.choice(_MECHANISMS)
    bare = chance.random() < 0.3
    handshake = sound(
        ApiKey.SASL_HANDSHAKE, 0 if bare else 1, SaslHandshakeRequest(mechanism=mechanism)
    )
    if chance.random() < 0.2:
        return tuple(before), f"{mechanism} handshake", _broken(handshake, chance)
    if chance.random() < 0.9:
        before.append(handshake)
    token = chance.choice(_TOKENS)
    if chance.random() < 0.6:
        token = flipped(token, chance)
    if chance.random() < 0.05:
        token = token * 20_000
    if bare:
        return tuple(before), f"{mechanism} bare token", framed(token)
    version = chance.choice((0, 1, 2))
    message = sound(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(auth_bytes=token))
    if chance.random() < 0.3:
        message = _broken(message, chance)
    return tuple(before), f"{mechanism} token", message


def _broken(frame: bytes, chance: random.Random) -> bytes:
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: framed(flipped(frame[4:], chance)),
        lambda: framed(frame[4 : chance.randrange(5, len(frame))]),
        lambda: lying_size(frame[4:], chance),
        lambda: frame + frame,
    )
    return chance.choice(ways)()


def _records(chance: random.Random) -> tuple[str, bytes]:
    """TLS records: none at all, wrong ones, and client hellos with something changed."""
    way = chance.randrange(4)
    if way == 0:
        return "no TLS", chance.randbytes(chance.choice((1, 5, 6, 200)))
    if way == 1:
        kind, version = chance.choice((20, 21, 22, 23, 24, 99)), chance.choice((0, 0x0301, 0x0303))
        body = chance.randbytes(chance.choice((0, 1, 40, 500)))
        size = chance.choice((len(body), 0, 16_384, 16_385, 65_535))
        return "TLS record", struct.pack(">BHH", kind, version, size) + body
    if way == 2:
        return "TLS hello, changed", flipped(_hello(chance), chance)
    hello = _hello(chance)
    return "TLS hello, cut", hello[: chance.randrange(1, len(hello))]


def _hello(chance: random.Random) -> bytes:
    suites = struct.pack(">5H", 0x1301, 0x1302, 0xC02F, 0xC02B, 0x002F)
    groups = struct.pack(">HHHHH", 10, 6, 4, 29, 23)
    signatures = struct.pack(">HHHHHH", 13, 8, 6, 0x0403, 0x0804, 0x0401)
    versions = struct.pack(">HHBHH", 43, 5, 4, 0x0304, 0x0303)
    share = struct.pack(">HHHHH", 51, 38, 36, 29, 32) + chance.randbytes(32)
    extensions = groups + signatures + versions + share
    body = b"\x03\x03" + chance.randbytes(32) + b"\x00"
    body += struct.pack(">H", len(suites)) + suites + b"\x01\x00"
    body += struct.pack(">H", len(extensions)) + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return struct.pack(">BHH", 22, 0x0301, len(message)) + message
