"""Whatever names formats of tables names all of them: their one list is `FORMATS`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import moldau.pipelines
from moldau.cli.pipelines.pipelines import _endpoint
from moldau.pipelines import definition
from moldau.spark.tables import FORMATS, SINK, SOURCE, OptionError, check_options, datasource

DOCS = Path(__file__).resolve().parents[4] / "docs" / "tables.md"
names = pytest.mark.parametrize("name", FORMATS)


@names
def test_a_definition_in_python_can_name_it(name: str) -> None:
    function = getattr(moldau.pipelines, name.title())
    assert function("place").kind == name
    assert name.title() in moldau.pipelines.__all__
    assert name.title() in definition.__all__


@names
def test_the_command_line_names_it(name: str) -> None:
    assert _endpoint({"sink": {name: "place"}}, "sink") == f"{name} place"


@names
def test_spark_knows_it_by_the_same_name(name: str) -> None:
    known = FORMATS[name].data_source
    if known is not None:
        assert getattr(datasource, known).kind == name


@names
@pytest.mark.parametrize("role", [SOURCE, SINK])
def test_the_example_is_what_it_requires(name: str, role: str) -> None:
    spec = FORMATS[name]
    with pytest.raises(OptionError, match=re.escape(spec.example)):
        check_options(name, role, {})
    shown = re.findall(r"[{ ]([A-Za-z]+): ", spec.example)
    assert set(spec.required.get(role, ())) <= set(shown) - {name}
    assert spec.address in spec.options(role)


@pytest.mark.parametrize("name", [each for each in FORMATS if not FORMATS[each].is_files])
def test_every_option_of_ours_is_documented(name: str) -> None:
    """Options of folders of files are Spark's, and Spark's documentation has them."""
    spec = FORMATS[name]
    words = set(re.findall(r"[\w.-]+", DOCS.read_text()))
    # In a definition the address is the value of the format's name.
    assert (spec.source.keys() | spec.sink.keys()) - {spec.address} <= words
