"""Special values and the layout of batch headers are declared once, in `wire`."""

from __future__ import annotations

import ast
from pathlib import Path

import moldau
from moldau.wire import batch_header, constants

SOURCE = Path(moldau.__file__).parent
HOMES = {"wire/constants.py": constants, "wire/batch_header.py": batch_header}


def names_of(module: object) -> set[str]:
    return {name for name in vars(module) if name.isupper() or name == "Buffer"}


def assigned(tree: ast.Module) -> set[str]:
    """Names with a value of their own at the top of a module, without leading underscores."""
    found = set()
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        if targets and not isinstance(getattr(node, "value", None), ast.Name):
            found |= {each.id.lstrip("_") for each in targets if isinstance(each, ast.Name)}
    return found


def test_no_other_module_declares_the_same() -> None:
    names = {home: names_of(module) for home, module in HOMES.items()}
    again = set()
    for path in SOURCE.rglob("*.py"):
        relative = path.relative_to(SOURCE).as_posix()
        here = assigned(ast.parse(path.read_text()))
        again |= {
            (relative, name) for home in HOMES if home != relative for name in names[home] & here
        }
    # A field of a message or of another format may have the name of a constant.
    assert again == set()


def test_the_parts_of_the_header_agree_with_the_whole() -> None:
    header = batch_header
    batch = header.HEADER_STRUCT.pack(1, 2, 3, header.MAGIC, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    assert len(batch) == header.HEADER_SIZE
    assert header.OFFSET_AND_LENGTH_STRUCT.size == header.LOG_OVERHEAD
    assert header.OFFSET_AND_LENGTH_STRUCT.unpack_from(batch) == (1, 2)
    assert header.PREFIX_STRUCT.unpack_from(batch) == (1, 2, 3)
    assert header.UP_TO_DELTA_STRUCT.unpack_from(batch) == (1, 2, 3, header.MAGIC, 5, 6, 7)
    assert header.BOUNDS_STRUCT.unpack_from(batch) == (1, 2, 7)
    assert header.BOUNDS_AND_TIME_STRUCT.unpack_from(batch) == (1, 2, 7, 9)
    assert header.LENGTH_MAGIC_ATTRIBUTES_STRUCT.unpack_from(batch) == (2, header.MAGIC, 6)
    assert header.PRODUCER_STRUCT.unpack_from(batch) == (10, 11, 12)
    assert batch[header.MAGIC_POSITION] == header.MAGIC
    for layout, position, value in (
        (header.CRC_STRUCT, header.CRC_POSITION, 5),
        (header.ATTRIBUTES_STRUCT, header.ATTRIBUTES_POSITION, 6),
        (header.LAST_OFFSET_DELTA_STRUCT, header.LAST_OFFSET_DELTA_POSITION, 7),
        (header.TIMESTAMP_STRUCT, header.MAX_TIMESTAMP_POSITION, 9),
    ):
        assert layout.unpack_from(batch, position) == (value,)
