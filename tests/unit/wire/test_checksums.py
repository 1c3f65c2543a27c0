"""The checksum of record batches."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package

from moldau.wire.checksums import crc32c


def test_it_is_that_of_the_package() -> None:
    for data in (b"", b"123456789", bytes(range(256)) * 40):
        assert crc32c(data) == crc32c(memoryview(data)) == package.crc32c(data)
    assert crc32c(b"123456789") == 0xE3069283


def test_nothing_else_of_its_package_is_imported() -> None:
    code = (
        "import sys, moldau.wire.checksums; "
        "print(*sorted({'crc32c', 'email', 'importlib.metadata'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
