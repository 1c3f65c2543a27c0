# C types for _cache.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams._records cimport RecordContext, TaskCore


cdef class RecordCache:
    cdef public long long bytes_max
    cdef public long long size_bytes


cdef class StoreCache:
    cdef RecordCache _shared
    cdef TaskCore _runtime
    cdef long long _size_bytes
    cdef dict _waiting
    cdef public bint forwards
    cdef public object write

    @cython.locals(context=RecordContext, before=tuple, grown=cython.longlong)
    cpdef put(self, key, Py_ssize_t size, old, new)
    cpdef bint has(self, key)
    cpdef discard(self)
    cpdef flush(self)
