"""What `from moldau.client import ...` gives."""

from __future__ import annotations

import subprocess
import sys

import pytest

import moldau.client


@pytest.mark.parametrize("name", moldau.client.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(moldau.client, name).__name__ == name


def test_who_only_sends_does_not_load_the_rest() -> None:
    program = (
        "import sys; from moldau.client import Producer; "
        "print([name for name in sys.modules if name.startswith("
        "('moldau.client.admin', 'moldau.client.share', 'moldau.broker'))])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="Consumr"):
        moldau.client.Consumr  # noqa: B018
