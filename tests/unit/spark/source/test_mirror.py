"""The group of a query is named after it."""

from __future__ import annotations

import pytest

from moldau.spark.source.mirror import query_group

ID = "da5820fd-1657-4063-a6f5-b5d8fe76e451"
REST = f"id = {ID}\nrunId = 6cfda6f9-0360-4d07-a6e1-6a3aeba7daec\nbatch = 2"


@pytest.mark.parametrize(
    ("description", "query_id", "group"),
    [
        pytest.param(f"big orders\n{REST}", ID, "p-big orders", id="by its name"),
        pytest.param(f"a\nb\n{REST}", ID, "p-a\nb", id="whatever the name"),
        pytest.param(f"a\n{REST}".replace("\n", "<br/>"), ID, "p-a", id="as older Sparks write it"),
        pytest.param(REST, ID, f"p-{ID}", id="without a name by its id"),
        pytest.param("my own description", ID, f"p-{ID}", id="not understood"),
        pytest.param(None, ID, f"p-{ID}", id="no description"),
        pytest.param("a batch query", None, None, id="no streaming query"),
    ],
)
def test_group(description: str | None, query_id: str | None, group: str | None) -> None:
    assert query_group("p", description, query_id) == group


def test_the_default_prefix() -> None:
    assert query_group(None, None, ID) == f"moldau-spark-{ID}"
