"""Names of subjects, and which settings hold for them."""

from __future__ import annotations

import pytest

from moldau.services.registry.machine.errors import RegistryError
from moldau.services.registry.machine.queries import Deleted
from moldau.services.registry.machine.subjects import (
    QualifiedSubject,
    is_valid_subject,
    normalize,
    normalize_context,
    qualify,
)
from support.registry.machine import MemoryRegistry


@pytest.mark.parametrize(
    ("name", "context", "subject", "spelled"),
    [
        ("a", ".", "a", "a"),
        (":.:a", ".", "a", "a"),
        (":.c:a", ".c", "a", ":.c:a"),
        (":.c:", ".c", "", ":.c:"),
        (":.c", ".c", "", ":.c:"),
        (":.c:a:b", ".c", "a:b", ":.c:a:b"),
        ("a:b", ".", "a:b", "a:b"),
        (":a", ".", ":a", ":a"),
        ("", ".", "", ""),
    ],
)
def test_a_name_says_its_context(name: str, context: str, subject: str, spelled: str) -> None:
    assert QualifiedSubject.parse(name) == QualifiedSubject(context, subject)
    assert normalize(name) == spelled


@pytest.mark.parametrize(
    ("given", "prefix"), [("c", ":.c:"), (".c", ":.c:"), (":.c:", ":.c:"), (".", ""), ("", "")]
)
def test_a_context_can_be_written_in_several_ways(given: str, prefix: str) -> None:
    assert normalize_context(given) == prefix


def test_a_context_has_no_colon() -> None:
    with pytest.raises(RegistryError):
        normalize_context("a:b")


def test_a_reference_is_looked_for_in_the_context_of_its_user() -> None:
    assert str(qualify(":.c:user", "base")) == ":.c:base"
    assert str(qualify(":.c:user", ":.d:base")) == ":.d:base"
    assert str(qualify("user", "base")) == "base"


@pytest.mark.parametrize("name", ["__GLOBAL", "__EMPTY", "a\nb", "a\x7fb", ":.__GLOBAL:a"])
def test_names_that_no_schema_can_have(name: str) -> None:
    assert not is_valid_subject(name, for_settings=False)


@pytest.mark.parametrize(
    ("subject", "level"),
    [
        pytest.param("own", "FULL", id="its own"),
        pytest.param("other", "FORWARD", id="the registry's"),
        pytest.param(":.c:own", "NONE", id="its own in a context"),
        pytest.param(":.c:other", "BACKWARD_TRANSITIVE", id="the context's"),
        pytest.param(":.d:other", "FULL_TRANSITIVE", id="that of all contexts"),
    ],
)
def test_the_nearest_config_holds(subject: str, level: str) -> None:
    memory = MemoryRegistry()
    memory.configure(None, compatibility="FORWARD")
    memory.configure("own", compatibility="FULL")
    memory.configure(":.c:", compatibility="BACKWARD_TRANSITIVE")
    memory.configure(":.c:own", compatibility="NONE")
    memory.configure(":.__GLOBAL:", compatibility="FULL_TRANSITIVE")
    assert memory.registry.scopes.config(subject).compatibility_level == level


def test_a_change_of_a_config_leaves_the_rest() -> None:
    memory = MemoryRegistry()
    memory.configure("a", compatibility="FULL", normalize=True, alias="b")
    memory.configure("a", compatibility="NONE")
    memory.configure("a", alias=None)
    config = memory.registry.state.config("a")
    assert config is not None
    assert (config.compatibility_level, config.normalize, config.alias) == ("NONE", True, None)


def test_an_alias_leads_to_its_subject_in_the_same_context() -> None:
    memory = MemoryRegistry()
    memory.configure(":.c:short", alias="long")
    assert memory.registry.scopes.resolve_alias(":.c:short") == ":.c:long"
    assert memory.registry.scopes.resolve_alias("short") == "short"


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        pytest.param(":*:", [":.c:ab", ":.c:x", "a", "ab", "b"], id="all contexts"),
        pytest.param(":*:a", [":.c:ab", "a", "ab"], id="a prefix in all contexts"),
        pytest.param("", ["a", "ab", "b"], id="the default context"),
        pytest.param("a", ["a", "ab"], id="a prefix there"),
        pytest.param(":.c:", [":.c:ab", ":.c:x"], id="a context"),
        pytest.param(":.c:a", [":.c:ab"], id="a prefix in a context"),
        pytest.param(":.d:", [], id="a context that is not there"),
    ],
)
def test_subjects_are_listed_by_prefix(prefix: str, found: list[str]) -> None:
    memory = MemoryRegistry()
    for name in ("b", "a", "ab", ":.c:x", ":.c:ab"):
        memory.register(name, '"string"')
    assert memory.registry.queries.subjects(prefix, Deleted.EXCLUDED) == found


def test_deleted_versions_are_listed_as_asked() -> None:
    memory = MemoryRegistry()
    memory.configure("a", compatibility="NONE")
    for text in ('"string"', '"int"', '"long"'):
        memory.register("a", text)
    memory.delete_version("a", 2)
    versions = memory.registry.queries.versions
    assert versions("a", Deleted.EXCLUDED) == [1, 3]
    assert versions("a", Deleted.INCLUDED) == [1, 2, 3]
    assert versions("a", Deleted.ONLY) == [2]
    assert versions("a", Deleted.AS_NEGATIVE) == [1, -2, 3]
