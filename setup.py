"""Compiles what handles single records with Cython where a C compiler is found.

Each module is one Python file in Cython's pure-Python mode: without a compiler the same file runs
as it is, only slower.
"""

from __future__ import annotations

import os

from setuptools import Extension, setup

MODULES = (
    "moldau.broker.handlers.support._fetch_codec",
    "moldau.broker.handlers.support._produce_codec",
    "moldau.broker.log.machine._plain_batches",
    "moldau.broker.network._connection",
    "moldau.broker.network._sending",
    "moldau.broker.network.machine._frames",
    "moldau.broker.network.security._tls_records",
    "moldau.wire._flexible",
    "moldau.wire._record_codec",
    "moldau.wire._schema_ids",
    "moldau.client._records",
    "moldau.client._batch_builder",
    "moldau.client._fetch_reader",
    "moldau.client.metrics._stats",
    "moldau.metrics._instruments",
    "moldau.client.producer._batch",
    "moldau.client.producer._murmur2",
    "moldau.client.producer._send_path",
    "moldau.services.mqtt.machine._plain_packets",
    "moldau.spark.columns._decoder",
    "moldau.spark.columns._rows",
    "moldau.streams._records",
    "moldau.streams._serdes",
    "moldau.streams.machine._join_steps",
    "moldau.streams.machine._nodes",
    "moldau.streams.machine._steps",
    "moldau.streams.machine._window_steps",
    "moldau.streams.stores._cache",
    "moldau.streams.stores._maps",
    "moldau.streams.stores._segments",
    "moldau.streams.stores._tables",
    "moldau.streams.stores._windows",
)


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    sources = [
        Extension(name, [f"src/{name.replace('.', '/')}.py"], extra_compile_args=["-O3", "-g0"])
        for name in MODULES
    ]
    modules: list[Extension] = cythonize(sources, language_level=3, quiet=True)
    for module in modules:
        # Set here, for cythonize drops it: without a compiler the install goes on.
        module.optional = True
    return modules


# Each module takes the C compiler some seconds, so they are compiled side by side.
setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count() or 1}})
