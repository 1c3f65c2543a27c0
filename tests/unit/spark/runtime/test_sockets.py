"""Where Spark and its Python workers may talk over Unix sockets."""

from __future__ import annotations

import socket
from pathlib import Path
from tempfile import TemporaryDirectory

from moldau.spark.runtime.sockets import usable


def test_sockets_of_an_earlier_server_go_and_nobody_else_gets_in() -> None:
    with TemporaryDirectory() as short:
        folder = Path(short) / "sockets"
        assert usable(folder)
        (folder / "left").touch()
        assert usable(folder)
        assert list(folder.iterdir()) == []
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_path_that_the_system_does_not_take_is_not_used() -> None:
    with TemporaryDirectory() as short:
        # With the name that Spark gives to a socket.
        fits = 107 - 42 - len(f"{short}/")
        longest = Path(short) / ("x" * (fits - 1))
        assert usable(longest)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
            made.bind(str(longest / f".{'0' * 36}.sock"))
        assert not usable(longest.with_name("x" * fits))


def test_a_folder_that_cannot_be_made_is_not_used(tmp_path: Path) -> None:
    with TemporaryDirectory() as short:
        file = Path(short) / "file"
        file.touch()
        assert not usable(file / "sockets")
