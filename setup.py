"""Compiles what handles single records with Cython where a C compiler is found.

Each module is one Python file in Cython's pure-Python mode: without a compiler the same file runs
as it is, only slower.
"""

from __future__ import annotations

from setuptools import Extension, setup

MODULES = (
    "moldau.wire._record_codec",
    "moldau.client._records",
    "moldau.client._batch_builder",
    "moldau.client.fetch_reader",
    "moldau.client.metrics.stats",
    "moldau.client.producer._batch",
    "moldau.client.producer._murmur2",
    "moldau.client.producer._send_path",
)


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    sources = [
        Extension(name, [f"src/{name.replace('.', '/')}.py"], extra_compile_args=["-O3"])
        for name in MODULES
    ]
    modules: list[Extension] = cythonize(sources, language_level=3, quiet=True)
    for module in modules:
        # Set here, for cythonize drops it: without a compiler the install goes on.
        module.optional = True
    return modules


setup(ext_modules=extensions())
