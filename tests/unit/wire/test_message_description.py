"""The reader of schemas/: what it understands, and that it says where a mistake is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from generate_messages import generate
from message_description import (
    OPEN_END,
    DescriptionError,
    Versions,
    load,
    snake_case,
)

EXAMPLE = """
api Example number=7 versions=1-3 flexible=2+ listeners=broker,controller forwarded

request   # a comment
  Name      string   0+   nullable=2+ default=null ignorable
  Parts     []Part   1-2
    Id      int32    0+   key entity=brokerId
    Deeper  Deep     1+   tag=0
      Flag  bool     1+   default=true
  Shared    Common   1+
  struct Common 0+
    Text    string   0+   default="x"

response
"""


def load_text(directory: Path, text: str, name: str = "example.schema") -> object:
    (directory / name).write_text(text)
    return load(directory)


def test_example(tmp_path: Path) -> None:
    (tmp_path / "example.schema").write_text(EXAMPLE)
    description = load(tmp_path)
    (api,) = description.apis
    assert (api.name, api.number, api.versions) == ("Example", 7, Versions(1, 3))
    assert api.listeners == ("broker", "controller")
    assert (api.forwarded, api.cluster_action, api.latest_unstable) == (True, False, False)
    request, response = description.modules["example"]
    assert (request.name, request.flexible) == ("ExampleRequest", Versions(2, OPEN_END))
    assert (response.name, response.fields) == ("ExampleResponse", [])
    assert [field.name for field in request.fields] == ["Name", "Parts", "Shared"]
    assert list(request.structs) == ["Part", "Deep", "Common"]
    name, parts, _ = request.fields
    assert (name.nullable, name.default, name.ignorable) == (Versions(2, OPEN_END), "null", True)
    assert (parts.element, parts.is_array, parts.versions) == ("Part", True, Versions(1, 2))
    identity, deeper = request.structs["Part"].fields
    assert (identity.key, identity.entity) == (True, "brokerId")
    assert (deeper.tag, deeper.tagged) == (0, Versions(1, OPEN_END))


def test_generated_class_works(tmp_path: Path) -> None:
    (tmp_path / "example.schema").write_text(EXAMPLE)
    namespace: dict[str, object] = {"__name__": "example"}
    exec(generate(load(tmp_path))["example.py"], namespace)
    request = namespace["ExampleRequest"]()  # type: ignore[operator]
    assert request.name is None
    assert request.parts == []
    assert request.shared.text == "x"
    assert namespace["ExampleRequest"].Deep().flag is True  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense X\n", "line 1: 'nonsense' is none of"),
        ("  Field int32 0+\n", "line 1: a field outside"),
        ("request\n", "after an `api` line"),
        ("data X flexible=none\n", "versions= is missing"),
        ("data X versions=0+ flexible=none\n", "closed range"),
        ("data X versions=0-1 flexible=maybe\n", "'maybe' is no range"),
        ("data X versions=0 flexible=none\n  Field int32\n", "line 2: write `FIELD TYPE RANGE"),
        ("data X versions=0 flexible=none\n  Field int32 0+ colour=red\n", "no attribute here"),
        ("data X versions=0 flexible=none\n  Field int33 0+\n", "no type int33"),
        ("data X versions=0 flexible=none\n Field int32 0+\n", "two spaces"),
        ("data X versions=0 flexible=none\n  F int32 0+\n    G int32 0+\n", "line 3: deeper"),
        ("data X versions=0 flexible=none\n  F int32 0+\n  F int8 0+\n", "used twice"),
        ("data X versions=0 flexible=0+\n  F int8 0+ tag=0\n  G int8 0+ tag=0\n", "used twice"),
        ("data X versions=0 flexible=none\n  F int32 0+ default=many\n", "bad default"),
        ("data X versions=0 flexible=none\n  F string 0+ default=null\n", "is not nullable"),
        ("data X versions=0 flexible=0+\n  F bytes 0+ flexible=none\n", "only override"),
        (
            "data X versions=0 flexible=none\n  F A 0+\n    G int8 0+\n  H A 0+\n    I int8 0+\n",
            "A is defined twice",
        ),
    ],
)
def test_mistakes_are_located(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(DescriptionError, match=r"example\.schema.*") as caught:
        load_text(tmp_path, text)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TransactionalId", "transactional_id"),
        ("IsrNodes", "isr_nodes"),
        ("KRaftVersionFeature", "kraft_version_feature"),
        ("topicGroupId", "topic_group_id"),
        ("Enable2Pc", "enable2_pc"),
        ("HTTPServer", "http_server"),
    ],
)
def test_snake_case(name: str, expected: str) -> None:
    assert snake_case(name) == expected
