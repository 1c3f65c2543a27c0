"""The folder of handlers is the protocol's table of contents."""

from __future__ import annotations

from pathlib import Path

import pytest

import moldau.broker.handlers
from moldau.wire.apis import API_BY_KEY, ApiKey

HANDLERS = sorted(
    path
    for path in Path(moldau.broker.handlers.__path__[0]).glob("*.py")
    if path.stem != "__init__"
)
# Another handler of an API that has its own file.
SECOND_HANDLERS = {"metadata_fetch"}


@pytest.mark.parametrize("path", HANDLERS, ids=lambda path: path.stem)
def test_a_file_is_named_after_its_api_and_begins_with_its_key_and_versions(path: Path) -> None:
    if path.stem in SECOND_HANDLERS:
        return
    key = ApiKey[path.stem.upper()]
    api = API_BY_KEY[key]
    low, high = api.min_version, api.max_version
    versions = f"v{low}" if low == high else f"v{low}-{high}"
    assert path.read_text().startswith(f'"""{api.name} (key {int(key)}), {versions}: ')
