"""Java .properties text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.config import ConfigError, dump_properties, load_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        pytest.param("a=1\nb: 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}, id="separators"),
        pytest.param("  a  =  1  \n", {"a": "1  "}, id="only trailing blanks stay"),
        pytest.param("a = = 1", {"a": "= 1"}, id="one separator only"),
        pytest.param("a\t:\t1", {"a": "1"}, id="tabs"),
        pytest.param("# x\n ! y\n\n  \na=1", {"a": "1"}, id="comments and blank lines"),
        pytest.param("a=1 # no comment", {"a": "1 # no comment"}, id="comments only at the start"),
        pytest.param("a=x,\\\n    y,\\\n  z", {"a": "x,y,z"}, id="continuation"),
        pytest.param("a=x\\\n# y\nb=1", {"a": "x# y", "b": "1"}, id="no comment in continuation"),
        pytest.param("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}, id="escaped backslash ends the line"),
        pytest.param("a=x\\", {"a": "x"}, id="continuation at the end"),
        pytest.param("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}, id="escaped separators"),
        pytest.param("a=\\t\\n\\r\\f\\q", {"a": "\t\n\r\fq"}, id="escapes"),
        pytest.param("a=\\u00e4\\u20AC", {"a": "ä€"}, id="unicode escapes"),
        pytest.param("a=\\uD83D\\uDE00", {"a": "😀"}, id="surrogate pair"),
        pytest.param("a=ä€", {"a": "ä€"}, id="plain unicode"),
        pytest.param("a", {"a": ""}, id="no value"),
        pytest.param("a=", {"a": ""}, id="empty value"),
        pytest.param("=1", {"": "1"}, id="empty key"),
        pytest.param("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}, id="line ends"),
        pytest.param("a=1\na=2", {"a": "2"}, id="last one wins"),
        pytest.param("", {}, id="nothing"),
    ],
)
def test_loaded(text: str, properties: dict[str, str]) -> None:
    assert load_properties(text) == properties


@pytest.mark.parametrize("text", ["x=1\na=\\u12", "x=1\na=\\u12xy"])
def test_a_broken_unicode_escape_names_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        load_properties(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        properties = load_properties(text)
    except ConfigError:
        return
    assert all(isinstance(part, str) for item in properties.items() for part in item)


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_escaped_properties_read_back(properties: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        return "".join(
            f"\\u{unit:04x}"
            for character in text
            for unit in memoryview(character.encode("utf-16-le", "surrogatepass")).cast("H")
        )

    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in properties.items())
    clean = {key: value for key, value in properties.items() if _encodable(key + value)}
    assert clean.items() <= load_properties(text).items()


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_is_dumped_reads_back(properties: dict[str, str]) -> None:
    clean = {key: value for key, value in properties.items() if _encodable(key + value)}
    assert load_properties(dump_properties(clean)) == clean
