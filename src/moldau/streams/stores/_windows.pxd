# C types for _windows.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams._serdes cimport CoreSerde, core_serde
from moldau.streams.longs cimport prefixed, unpack_long, window_key
from moldau.streams.stores._cache cimport StoreCache
from moldau.streams.stores._segments cimport Segments
from moldau.streams.stores._tables cimport ChangelogWriter, changelog_writer


cdef class WindowStore:
    cdef readonly object name
    cdef readonly object _topic
    cdef readonly CoreSerde _keys
    cdef readonly CoreSerde _values
    cdef readonly object _size_ms
    cdef bint _retain_duplicates
    cdef bint _timestamped
    cdef long long _sequence
    cdef readonly object _segments
    cdef Segments _memory
    cdef readonly ChangelogWriter _log
    cdef StoreCache _cache
    cdef readonly object _listener

    cpdef bytes raw_key(self, key)
    cpdef find(self, tuple entry)
    cpdef value_of(self, bytes kept)
    cpdef _value(self, bytes kept)
    cpdef bytes _kept(self, bytes data, long long timestamp, headers)
    cpdef put(self, key, value, start, long long timestamp=*)
    @cython.locals(data=bytes, kept=bytes)
    cpdef write(self, bytes raw, value, start, long long timestamp)
    @cython.locals(cache=StoreCache, entry=tuple, time=cython.longlong)
    cpdef keep(self, bytes raw, start, bytes data, bytes kept, long long timestamp, headers)
    cpdef fetch(self, key, low, high)
