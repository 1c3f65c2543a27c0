"""SCRAM credentials of users and delegation tokens, from the metadata log as this node knows it.

Invariant: an unknown name gets a made-up credential, the same one at each try and on every node, so
that neither the answers nor their timing say which users exist, not even when nodes are compared.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Final

from moldau.broker.metadata.machine.delegation_tokens import token_hmac
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.security.machine.scram import (
    ScramCredential,
    ScramLogin,
    ScramMechanism,
    fake_credential,
    make_credential,
)
from moldau.wire.messages import UserScramCredentialRecord

__all__ = ["ImageCredentials", "NoCredentials"]

#: Salting a token's HMAC takes milliseconds; those of the last tokens are kept.
CACHED_MAX: Final = 1_000
#: How often the secret behind made-up credentials is derived again.
SECRET_MS_MAX: Final = 60_000
_SALT_BYTES: Final = 20


class NoCredentials:
    """Before the metadata is known: nobody is."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def find(self, mechanism: ScramMechanism, name: str, is_token: bool) -> ScramLogin:
        return ScramLogin(fake_credential(mechanism, name, self._secret), name, is_fake=True)


class ImageCredentials:
    """Implements `CredentialSource`."""

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        secret: bytes,
        *,
        token_key: bytes | None = None,
        now_ms: Callable[[], int],
    ) -> None:
        """`secret` is for a cluster without any other, `token_key` is
        delegation.token.secret.key."""
        self._image = image
        self._own_secret = secret
        self._secret = secret
        self._derived_ms: int | None = None
        self._token_key = token_key
        self._now_ms = now_ms
        self._of_tokens: dict[tuple[ScramMechanism, str], ScramCredential] = {}

    def find(self, mechanism: ScramMechanism, name: str, is_token: bool) -> ScramLogin:
        self._derive_secret()
        # Made in any case: a known name takes as long as an unknown one.
        like = None if is_token else self._any_user(mechanism)
        fake = fake_credential(mechanism, name, self._secret, like)
        found = self._token(mechanism, name) if is_token else self._user(mechanism, name)
        return found or ScramLogin(fake, name, is_fake=True)

    def _derive_secret(self) -> None:
        """From what all nodes have and no client knows: the key of tokens, or the keys of all users
        together, of which a user knows one."""
        now_ms = self._now_ms()
        if self._derived_ms is not None and now_ms - self._derived_ms < SECRET_MS_MAX:
            return
        self._derived_ms = now_ms
        parts = [self._token_key] if self._token_key is not None else []
        if not parts:
            users = self._image().scram
            parts = [users[key].stored_key + users[key].server_key for key in sorted(users)]
        secret = self._own_secret
        if parts:
            secret = hashlib.sha256(b"made-up credentials\0" + b"".join(parts)).digest()
        if secret != self._secret:
            self._secret = secret
            self._of_tokens.clear()

    def _any_user(self, mechanism: ScramMechanism) -> ScramCredential | None:
        """The first one that the metadata has, whose shape unknown users take."""
        for (kind, _), record in self._image().scram.items():
            if kind == mechanism.value:
                return _credential(record)
        return None

    def _user(self, mechanism: ScramMechanism, name: str) -> ScramLogin | None:
        record = self._image().scram.get((mechanism.value, name))
        if record is None:
            return None
        return ScramLogin(_credential(record), name)

    def _token(self, mechanism: ScramMechanism, token_id: str) -> ScramLogin | None:
        record = self._image().tokens.get(token_id)
        if record is None or self._token_key is None:
            return None
        if min(record.max_timestamp, record.expiration_timestamp) < self._now_ms():
            return None
        return ScramLogin(
            self._token_credential(mechanism, token_id, self._token_key),
            record.owner.partition(":")[2],
            expires_at_ms=record.expiration_timestamp,
        )

    def _token_credential(
        self, mechanism: ScramMechanism, token_id: str, token_key: bytes
    ) -> ScramCredential:
        """The password is the HMAC in base64, as the tools print it."""
        known = self._of_tokens.get((mechanism, token_id))
        if known is None:
            if len(self._of_tokens) >= CACHED_MAX:
                self._of_tokens.clear()
            password = base64.b64encode(token_hmac(token_key, token_id))
            salt = hmac.digest(self._secret, b"token:" + token_id.encode(), "sha256")[:_SALT_BYTES]
            known = make_credential(mechanism, password, salt, mechanism.iterations_min)
            self._of_tokens[mechanism, token_id] = known
        return known


def _credential(record: UserScramCredentialRecord) -> ScramCredential:
    return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
