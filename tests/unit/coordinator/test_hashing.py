from __future__ import annotations

import pytest

from moldau.broker.coordinator.machine.hashing import java_string_hash, partition_for


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("my-group", -1906497762),
        ("polygenelubricants", -2147483648),
        ("😀", 1772899),
        ("группа", 1749938458),
        ("connect-cluster-1", 1190215675),
    ],
)
def test_hash_is_javas(text: str, value: int) -> None:
    assert java_string_hash(text) == value


@pytest.mark.parametrize(
    ("key", "count", "partition"),
    [
        pytest.param("hello", 50, 22, id="positive"),
        pytest.param("my-group", 50, 12, id="negative: absolute value, not the sign bit cleared"),
        pytest.param("polygenelubricants", 50, 0, id="smallest int counts as zero"),
        pytest.param("anything", 1, 0, id="one partition"),
    ],
)
def test_partition_is_kafkas(key: str, count: int, partition: int) -> None:
    assert partition_for(key, count) == partition
