# C types for _windows.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams._serdes cimport CoreSerde, core_serde
from moldau.streams.longs cimport prefixed, unpack_long, window_key
from moldau.streams.stores._cache cimport StoreCache
from moldau.streams.stores._segments cimport Segments
from moldau.streams.stores._tables cimport ChangelogWriter, changelog_writer


cdef class WindowStore:
    cdef readonly object name
    cdef object _topic
    cdef CoreSerde _keys
    cdef CoreSerde _values
    cdef object _size_ms
    cdef bint _retain_duplicates
    cdef bint _timestamped
    cdef long long _sequence
    cdef object _segments
    cdef Segments _memory
    cdef ChangelogWriter _log
    cdef StoreCache _cache
    cdef object _listener

    cpdef bytes raw_key(self, key)
    cpdef find(self, tuple entry)
    cpdef value_of(self, bytes kept)
    cdef tuple _value(self, bytes kept)
    cpdef put(self, key, value, start, long long timestamp=*)
    @cython.locals(cache=StoreCache, data=bytes, kept=bytes, entry=tuple, time=cython.longlong)
    cpdef write(self, bytes raw, value, start, long long timestamp)
    cpdef fetch(self, key, low, high)
