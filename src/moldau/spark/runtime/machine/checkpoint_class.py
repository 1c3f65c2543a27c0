"""The one Java class of ours: it writes files of checkpoints, without starting a process.

Where Hadoop's native library is missing, as it is in PySpark, Hadoop starts `chmod` for every file
that it creates on a local file system, and one more for the file's checksums: most of the time that
a micro-batch takes for its two files. No setting of Hadoop's or Spark's avoids that. And the local
file system of PySpark, which is Hive's, does not replace a file by a rename: what a batch that runs
again writes of its state would be dropped. So Spark is given a class, assembled here because a
machine that runs Spark need not have a Java compiler:

    public class CheckpointFiles extends FileSystemBasedCheckpointFileManager {
        public CheckpointFiles(Path path, Configuration conf) { super(path, conf); }

        public FSDataOutputStream createTempFile(Path path) {
            if (!isLocal()) return super.createTempFile(path);
            try {
                return new FSDataOutputStream(
                    new BufferedOutputStream(new FileOutputStream(path.toUri().getPath())), null);
            } catch (FileNotFoundException missingFolder) {
                return super.createTempFile(path);
            }
        }

        public void renameTempFile(Path from, Path to, boolean overwrite) {
            if (overwrite && isLocal()) {
                // Checksums of what is replaced.
                new File(to.getParent().toUri().getPath(), ".".concat(to.getName()).concat(".crc"))
                    .delete();
                if (new File(from.toUri().getPath()).renameTo(new File(to.toUri().getPath())))
                    return;
            }
            super.renameTempFile(from, to, overwrite);
        }
    }

Pure.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["CLASS_NAME", "class_file", "entry_name"]

CLASS_NAME: Final = "moldau.CheckpointFiles"

_SUPER = (
    "org/apache/spark/sql/execution/streaming/checkpointing/FileSystemBasedCheckpointFileManager"
)
_PATH, _OUT = "org/apache/hadoop/fs/Path", "org/apache/hadoop/fs/FSDataOutputStream"
_FILE, _BUFFERED = "java/io/FileOutputStream", "java/io/BufferedOutputStream"
_CONSTRUCTOR = f"(L{_PATH};Lorg/apache/hadoop/conf/Configuration;)V"
_CREATE = f"(L{_PATH};)L{_OUT};"
_RENAME = f"(L{_PATH};L{_PATH};Z)V"
_STRING = "java/lang/String"
_CLASS_FILE = 0xCAFEBABE
# The last one whose code Java checks without a description of its stack at every branch.
_VERSION = 49
_PUBLIC, _SUPER_CALLS = 0x0001, 0x0020
_ALOAD_0, _ALOAD_1, _ALOAD_2, _ACONST_NULL = b"\x2a", b"\x2b", b"\x2c", b"\x01"
_ILOAD_3, _POP, _DUP, _RETURN, _ARETURN = b"\x1d", b"\x57", b"\x59", b"\xb1", b"\xb0"
_LDC, _IFEQ, _IFNE = 0x12, 0x99, 0x9A
_INVOKEVIRTUAL, _INVOKESPECIAL, _NEW = 0xB6, 0xB7, 0xBB


class _Constants:
    """The constant pool: each entry once, numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def _number(self, entry: bytes) -> int:
        return self._numbers.setdefault(entry, len(self._numbers) + 1)

    def text(self, value: str) -> int:
        data = value.encode()
        return self._number(struct.pack(">BH", 1, len(data)) + data)

    def class_(self, name: str) -> int:
        return self._number(struct.pack(">BH", 7, self.text(name)))

    def method(self, owner: str, name: str, kind: str) -> int:
        signature = self._number(struct.pack(">BHH", 12, self.text(name), self.text(kind)))
        return self._number(struct.pack(">BHH", 10, self.class_(owner), signature))

    def call(self, code: int, owner: str, name: str, kind: str) -> bytes:
        return struct.pack(">BH", code, self.method(owner, name, kind))

    def new(self, name: str) -> bytes:
        return struct.pack(">BH", _NEW, self.class_(name)) + _DUP

    def load(self, value: str) -> bytes:
        return struct.pack(">BB", _LDC, self._number(struct.pack(">BH", 8, self.text(value))))

    def data(self) -> bytes:
        return struct.pack(">H", len(self._numbers) + 1) + b"".join(self._numbers)


def entry_name() -> str:
    """Where the class is in a jar."""
    return CLASS_NAME.replace(".", "/") + ".class"


def class_file() -> bytes:
    pool = _Constants()
    this, parent = pool.class_(CLASS_NAME.replace(".", "/")), pool.class_(_SUPER)
    methods = _constructor(pool) + _create_temp_file(pool) + _rename_temp_file(pool)
    return b"".join(
        (
            struct.pack(">IHH", _CLASS_FILE, 0, _VERSION),
            pool.data(),
            struct.pack(">HHH", _PUBLIC | _SUPER_CALLS, this, parent),
            struct.pack(">HHH", 0, 0, 3),  # No interfaces, no fields, three methods.
            methods,
            struct.pack(">H", 0),
        )
    )


def _constructor(pool: _Constants) -> bytes:
    code = b"".join(
        (
            _ALOAD_0 + _ALOAD_1 + _ALOAD_2,
            pool.call(_INVOKESPECIAL, _SUPER, "<init>", _CONSTRUCTOR),
            _RETURN,
        )
    )
    return _method(pool, "<init>", _CONSTRUCTOR, code, stack=3, variables=3)


def _create_temp_file(pool: _Constants) -> bytes:
    is_local = _is_local(pool)
    as_ever = (
        _ALOAD_0
        + _ALOAD_1
        + pool.call(_INVOKESPECIAL, _SUPER, "createTempFile", _CREATE)
        + _ARETURN
    )
    stream, statistics = "Ljava/io/OutputStream;", "Lorg/apache/hadoop/fs/FileSystem$Statistics;"
    here = b"".join(
        (
            pool.new(_OUT) + pool.new(_BUFFERED) + pool.new(_FILE),
            _ALOAD_1 + _name_of(pool),
            pool.call(_INVOKESPECIAL, _FILE, "<init>", f"(L{_STRING};)V"),
            pool.call(_INVOKESPECIAL, _BUFFERED, "<init>", f"({stream})V"),
            _ACONST_NULL,
            pool.call(_INVOKESPECIAL, _OUT, "<init>", f"({stream}{statistics})V"),
            _ARETURN,
        )
    )
    branch = struct.pack(">BH", _IFNE, 3 + len(as_ever))
    begin = len(is_local) + len(branch) + len(as_ever)
    end = begin + len(here)
    missing = pool.class_("java/io/FileNotFoundException")
    return _method(
        pool,
        "createTempFile",
        _CREATE,
        is_local + branch + as_ever + here + _POP + as_ever,
        stack=7,
        variables=2,
        handlers=struct.pack(">HHHH", begin, end, end, missing),
    )


def _rename_temp_file(pool: _Constants) -> bytes:
    file = "java/io/File"
    concat = pool.call(_INVOKEVIRTUAL, _STRING, "concat", f"(L{_STRING};)L{_STRING};")
    checksums = b"".join(
        (
            pool.new(file),
            _ALOAD_2 + pool.call(_INVOKEVIRTUAL, _PATH, "getParent", f"()L{_PATH};"),
            _name_of(pool),
            pool.load("."),
            _ALOAD_2 + pool.call(_INVOKEVIRTUAL, _PATH, "getName", f"()L{_STRING};") + concat,
            pool.load(".crc") + concat,
            pool.call(_INVOKESPECIAL, file, "<init>", f"(L{_STRING};L{_STRING};)V"),
        )
    )
    made = pool.call(_INVOKESPECIAL, file, "<init>", f"(L{_STRING};)V")
    replace = b"".join(
        (
            checksums + pool.call(_INVOKEVIRTUAL, file, "delete", "()Z") + _POP,
            pool.new(file) + _ALOAD_1 + _name_of(pool) + made,
            pool.new(file) + _ALOAD_2 + _name_of(pool) + made,
            pool.call(_INVOKEVIRTUAL, file, "renameTo", f"(L{file};)Z"),
            struct.pack(">BH", _IFEQ, 3 + len(_RETURN)) + _RETURN,
        )
    )
    is_local = _is_local(pool) + struct.pack(">BH", _IFEQ, 3 + len(replace))
    code = b"".join(
        (
            _ILOAD_3 + struct.pack(">BH", _IFEQ, 3 + len(is_local) + len(replace)),
            is_local + replace,
            _ALOAD_0 + _ALOAD_1 + _ALOAD_2 + _ILOAD_3,
            pool.call(_INVOKESPECIAL, _SUPER, "renameTempFile", _RENAME),
            _RETURN,
        )
    )
    return _method(pool, "renameTempFile", _RENAME, code, stack=5, variables=4)


def _is_local(pool: _Constants) -> bytes:
    return _ALOAD_0 + pool.call(_INVOKEVIRTUAL, _SUPER, "isLocal", "()Z")


def _name_of(pool: _Constants) -> bytes:
    """A path in the place of its name on the local file system."""
    uri = pool.call(_INVOKEVIRTUAL, _PATH, "toUri", "()Ljava/net/URI;")
    return uri + pool.call(_INVOKEVIRTUAL, "java/net/URI", "getPath", f"()L{_STRING};")


def _method(
    pool: _Constants,
    name: str,
    kind: str,
    code: bytes,
    *,
    stack: int,
    variables: int,
    handlers: bytes = b"",
) -> bytes:
    body = b"".join(
        (
            struct.pack(">HHI", stack, variables, len(code)),
            code,
            struct.pack(">H", len(handlers) // 8),
            handlers,
            struct.pack(">H", 0),
        )
    )
    head = struct.pack(">HHHH", _PUBLIC, pool.text(name), pool.text(kind), 1)
    return head + struct.pack(">HI", pool.text("Code"), len(body)) + body
