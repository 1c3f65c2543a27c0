"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), both sides, as Kafka speaks it.

Decided here: what each of the four messages must contain. The exchange is

    client: n,,n=user,r=<client nonce>        server: r=<both nonces>,s=<salt>,i=<iterations>
    client: c=biws,r=<both nonces>,p=<proof>  server: v=<signature>

Invariants: a message out of its turn, a nonce that is not the peer's own, channel binding and too
few iterations end the exchange; the password never leaves the client, and a server without the
right server key is found out. Randomness is passed in.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from moldau.security.machine.outcomes import AuthenticationFailed, SaslError

__all__ = [
    "TOKEN_AUTH",
    "ScramClient",
    "ScramCredential",
    "ScramLogin",
    "ScramMechanism",
    "ScramServer",
    "fake_credential",
    "make_credential",
]

TOKEN_AUTH: Final = "tokenauth"
#: A server that asks for more would keep the client's event loop busy for too long.
CLIENT_ITERATIONS_MAX: Final = 1_000_000
_SALT_BYTES: Final = 20
_SALT_LETTERS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_NONCE_LENGTH_MAX: Final = 1_024

_SASL_NAME: Final = r"(?:[^\x00=,]|=2C|=3D)+"
_VALUE: Final = r"[^\x00,]+"
_PRINTABLE: Final = r"[\x21-\x2B\x2D-\x7E]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
# A mandatory extension (`m=...`, before all else) does not match: none is known here.
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"

# Not compiled here: most processes that import this never match a message.
_CLIENT_FIRST: Final = (
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_SASL_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST: Final = (
    rf"r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}})"
    rf"{_EXTENSIONS}"
)
_CLIENT_FINAL: Final = (
    rf"(?P<without_proof>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),"
    rf"p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = rf"(?:e=(?P<error>[^\x00=,]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}"


class ScramMechanism(Enum):
    """The value is the number in requests and in the metadata log."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @property
    def digest_size(self) -> int:
        return 32 if self is ScramMechanism.SCRAM_SHA_256 else 64

    @property
    def iterations_min(self) -> int:
        return 4_096

    @property
    def iterations_max(self) -> int:
        return 16_384

    @classmethod
    def named(cls, mechanism_name: str) -> ScramMechanism | None:
        return next((each for each in cls if each.mechanism_name == mechanism_name), None)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server stores of a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramLogin:
    """What a server knows of the name that logs in."""

    credential: ScramCredential = field(repr=False)
    #: The principal's name: the user, or the owner of a delegation token.
    authorization_id: str
    #: When a delegation token expires, in wall time.
    expires_at_ms: int | None = None
    #: Whether the credential was made up, so that an unknown name looks like a wrong password.
    is_fake: bool = False


def salted_password(
    mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int
) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.digest, password, salt, iterations)


def credential_of(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential of a password that is salted already."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(mechanism.digest, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", mechanism.digest),
        iterations=iterations,
    )


def make_credential(
    mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of(mechanism, salted, salt, iterations)


def fake_credential(
    mechanism: ScramMechanism, name: str, secret: bytes, like: ScramCredential | None = None
) -> ScramCredential:
    """The credential of a user that does not exist: the same for each try, as a real one, and no
    password fits it. Salt and iterations look like those of `like`, since tools differ in them."""

    def part(label: bytes, size: int) -> bytes:
        return hmac.digest(secret, label + name.encode(errors="replace"), "sha512")[:size]

    size = _SALT_BYTES if like is None else len(like.salt)
    salt = part(b"salt:", size)
    if like is not None and like.salt.isalnum():
        # Kafka's own tools write the salt's bytes as text.
        salt = bytes(_SALT_LETTERS[byte % len(_SALT_LETTERS)] for byte in salt)
    return ScramCredential(
        salt=salt,
        stored_key=part(b"stored:", mechanism.digest_size),
        server_key=part(b"server:", mechanism.digest_size),
        iterations=mechanism.iterations_min if like is None else like.iterations,
    )


class _State(Enum):
    FIRST = "first"
    FINAL = "final"
    SERVER_FINAL = "server final"
    COMPLETE = "complete"
    FAILED = "failed"


class ScramServer:
    """A server's side of one exchange; `evaluate` is called with each message of the client.

    FIRST -> FINAL -> COMPLETE; a failure ends it in FAILED.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        *,
        nonce: str,
        find: Callable[[str, bool], ScramLogin],
    ) -> None:
        """`nonce` is fresh. `find` returns what is known of a name; the second argument says that
        it is the id of a delegation token."""
        self._mechanism = mechanism
        self._own_nonce = nonce
        self._find = find
        self._state = _State.FIRST
        self._gs2 = ""
        self._first_bare = ""
        self._server_first = ""
        self._nonce = ""
        self._login: ScramLogin | None = None
        self.token_authenticated = False

    @property
    def complete(self) -> bool:
        return self._state is _State.COMPLETE

    @property
    def authorization_id(self) -> str:
        return "" if self._login is None else self._login.authorization_id

    @property
    def expires_at_ms(self) -> int | None:
        return None if self._login is None else self._login.expires_at_ms

    def evaluate(self, token: bytes) -> bytes:
        """The answer to a message; raises SaslError or AuthenticationFailed."""
        state, self._state = self._state, _State.FAILED
        if state is _State.FIRST:
            answer = self._on_first(token)
            self._state = _State.FINAL
        elif state is _State.FINAL:
            answer = self._on_final(token)
            self._state = _State.COMPLETE
        else:
            raise SaslError("a SCRAM message came after the exchange had ended")
        return answer

    def _on_first(self, token: bytes) -> bytes:
        message = _match(_CLIENT_FIRST, token, "client first")
        if len(message["nonce"]) > _NONCE_LENGTH_MAX:
            raise SaslError(f"the client nonce has {len(message['nonce'])} characters")
        name = _user_name(message["name"])
        extensions = _extensions(message["extensions"])
        self.token_authenticated = extensions.get(TOKEN_AUTH, "").lower() == "true"
        login = self._find(name, self.token_authenticated)
        authzid = message["authzid"]
        if authzid is not None and _user_name(authzid) != name:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        credential = login.credential
        if credential.iterations < self._mechanism.iterations_min:
            raise SaslError(
                f"Iterations {credential.iterations} is less than the minimum "
                f"{self._mechanism.iterations_min} for {self._mechanism.mechanism_name}"
            )
        self._login = login
        self._gs2, self._first_bare = message["gs2"], message["bare"]
        self._nonce = message["nonce"] + self._own_nonce
        salt = base64.b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first.encode()

    def _on_final(self, token: bytes) -> bytes:
        message = _match(_CLIENT_FINAL, token, "client final")
        if not hmac.compare_digest(message["nonce"].encode(), self._nonce.encode()):
            raise SaslError("Invalid client nonce in the final client message.")
        # Kafka's clients send the header without an authorization id even if there is one.
        if _base64(message["channel"]) not in (b"n,,", self._gs2.encode()):
            raise SaslError("channel binding is not supported")
        login = self._login
        if login is None:
            raise SaslError("there is no user")
        credential, digest = login.credential, self._mechanism.digest
        auth_message = _auth_message(self._first_bare, self._server_first, message["without_proof"])
        signature = hmac.digest(credential.stored_key, auth_message, digest)
        proof = _base64(message["proof"])
        if len(proof) != len(signature):
            raise SaslError("Invalid client credentials")
        client_key = _xor(proof, signature)
        stored_key = hashlib.new(digest, client_key).digest()
        matches = hmac.compare_digest(stored_key, credential.stored_key)
        server_signature = hmac.digest(credential.server_key, auth_message, digest)
        if not matches or login.is_fake:
            raise SaslError("Invalid client credentials")
        return b"v=" + base64.b64encode(server_signature)


class ScramClient:
    """A client's side of one exchange.

    FIRST -> FINAL -> SERVER_FINAL -> COMPLETE; a failure ends it in FAILED.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        *,
        username: str,
        password: str,
        nonce: str,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._username = username
        self._password = password
        self._own_nonce = nonce
        self._extensions = dict(extensions or {})
        self._state = _State.FIRST
        self._first_bare = ""
        self._server_signature = b""

    @property
    def complete(self) -> bool:
        return self._state is _State.COMPLETE

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The next message, None at the end; the first one answers an empty challenge."""
        state, self._state = self._state, _State.FAILED
        answer: bytes | None = None
        match state:
            case _State.FIRST:
                answer = self._first(challenge)
                self._state = _State.FINAL
            case _State.FINAL:
                answer = self._on_server_first(challenge)
                self._state = _State.SERVER_FINAL
            case _State.SERVER_FINAL:
                self._on_server_final(challenge)
                self._state = _State.COMPLETE
            case _:
                raise SaslError("a SCRAM message came after the exchange had ended")
        return answer

    def _first(self, challenge: bytes) -> bytes:
        if challenge:
            raise SaslError("the server sent a challenge before the client's first message")
        extensions = "".join(f",{name}={value}" for name, value in self._extensions.items())
        name = self._username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._own_nonce}{extensions}"
        return f"n,,{self._first_bare}".encode()

    def _on_server_first(self, challenge: bytes) -> bytes:
        message = _match(_SERVER_FIRST, challenge, "server first")
        nonce, iterations = message["nonce"], int(message["iterations"])
        if not nonce.startswith(self._own_nonce) or nonce == self._own_nonce:
            raise SaslError("Invalid server nonce: does not start with client nonce")
        mechanism = self._mechanism
        if iterations < mechanism.iterations_min:
            raise SaslError(
                f"Requested iterations {iterations} is less than the minimum "
                f"{mechanism.iterations_min} for {mechanism.mechanism_name}"
            )
        if iterations > CLIENT_ITERATIONS_MAX:
            raise SaslError(
                f"Requested iterations {iterations} is more than the maximum "
                f"{CLIENT_ITERATIONS_MAX} for {mechanism.mechanism_name}"
            )
        salt = _base64(message["salt"])
        salted = salted_password(mechanism, self._password.encode(), salt, iterations)
        without_proof = f"c=biws,r={nonce}"
        server_first = challenge.decode()
        auth_message = _auth_message(self._first_bare, server_first, without_proof)
        client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
        stored_key = hashlib.new(mechanism.digest, client_key).digest()
        proof = _xor(client_key, hmac.digest(stored_key, auth_message, mechanism.digest))
        server_key = hmac.digest(salted, b"Server Key", mechanism.digest)
        self._server_signature = hmac.digest(server_key, auth_message, mechanism.digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _on_server_final(self, challenge: bytes) -> None:
        message = _match(_SERVER_FINAL, challenge, "server final")
        if message["error"] is not None:
            raise SaslError(
                f"Sasl authentication using {self._mechanism.mechanism_name} failed with error: "
                f"{message['error']}"
            )
        if not hmac.compare_digest(_base64(message["signature"]), self._server_signature):
            raise SaslError("Invalid server signature in server final message")


def _match(pattern: str, token: bytes, what: str) -> re.Match[str]:
    try:
        found = re.fullmatch(pattern, token.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise SaslError(f"Invalid SCRAM {what} message format")
    return found


def _user_name(sasl_name: str) -> str:
    return sasl_name.replace("=2C", ",").replace("=3D", "=")


def _extensions(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in text.split(",") if part)
    return {name: value for name, _, value in parts}


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise SaslError("a SCRAM message has invalid base64") from None


def _auth_message(first_bare: str, server_first: str, without_proof: str) -> bytes:
    return f"{first_bare},{server_first},{without_proof}".encode()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
