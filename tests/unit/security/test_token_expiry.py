"""An expired delegation token is of no more use than one that never was."""

from __future__ import annotations

import pytest

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.security.authentication.credentials import ImageCredentials
from moldau.security.machine.scram import ScramMechanism
from moldau.wire.messages import DelegationTokenRecord

SHA_256 = ScramMechanism.named("SCRAM-SHA-256")


@pytest.mark.parametrize(
    ("now_ms", "is_fake"),
    [(999, False), (1_000, False), (1_001, True), (5_001, True)],
)
def test_a_token_is_valid_until_it_expires(now_ms: int, is_fake: bool) -> None:
    assert SHA_256 is not None
    image = MetadataImage()
    image.tokens["id"] = DelegationTokenRecord(
        owner="User:alice", token_id="id", expiration_timestamp=1_000, max_timestamp=5_000
    )
    source = ImageCredentials(lambda: image, b"secret", token_key=b"key", now_ms=lambda: now_ms)
    login = source.find(SHA_256, "id", True)
    assert login.is_fake is is_fake
    # The session ends with the token.
    assert login.expires_at_ms == (None if is_fake else 1_000)


def test_the_id_of_a_token_is_no_user() -> None:
    """Without the extension `tokenauth` the name is looked up among the users."""
    assert SHA_256 is not None
    image = MetadataImage()
    image.tokens["id"] = DelegationTokenRecord(
        owner="User:alice", token_id="id", expiration_timestamp=1_000, max_timestamp=5_000
    )
    source = ImageCredentials(lambda: image, b"secret", token_key=b"key", now_ms=lambda: 0)
    assert source.find(SHA_256, "id", False).is_fake
