"""The fuzzer's own encoder writes what the codec writes, so that its tokens are where it says."""

from __future__ import annotations

import random

import pytest

from fuzz.tokens import tokens_of
from moldau.wire.apis import API_BY_KEY, Api
from moldau.wire.codec import encode
from support.message_samples import Samples


@pytest.mark.parametrize("api", API_BY_KEY.values(), ids=lambda api: api.name)
def test_tokens_are_the_bytes_of_the_message(api: Api) -> None:
    for version in range(api.min_version, api.max_version + 1):
        for seed in range(5):
            message = Samples(random.Random(seed)).message(api.request, version)
            joined = b"".join(token.data for token in tokens_of(message, version))
            assert joined == encode(message, version), (version, seed)
