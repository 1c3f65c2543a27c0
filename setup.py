"""Compiles the record codec with Cython where a C compiler is found.

The codec is one Python file in Cython's pure-Python mode: without a compiler the same file runs
as it is, only slower.
"""

from __future__ import annotations

from setuptools import Extension, setup


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    codec = Extension(
        "moldau.wire._record_codec",
        ["src/moldau/wire/_record_codec.py"],
        extra_compile_args=["-O3"],
    )
    modules: list[Extension] = cythonize([codec], language_level=3, quiet=True)
    for module in modules:
        # Set here, for cythonize drops it: without a compiler the install goes on.
        module.optional = True
    return modules


setup(ext_modules=extensions())
