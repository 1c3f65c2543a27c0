# C types for _tables.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams._records cimport Produced, TaskCore
from moldau.streams._serdes cimport CoreSerde, core_serde
from moldau.streams.longs cimport prefixed, unpack_long
from moldau.streams.stores._cache cimport StoreCache
from moldau.streams.stores._maps cimport ByteMap, OrderedMap


cdef class ChangelogWriter:
    cdef object _collect
    cdef object _topic
    cdef object _partition
    cdef TaskCore _runtime

    cpdef write(self, bytes key, value, long long timestamp, headers)


cdef class HeadersLog(ChangelogWriter):
    cpdef write(self, bytes key, value, long long timestamp, headers)


cdef class OwnHeadersLog(HeadersLog):
    cpdef write(self, bytes key, value, long long timestamp, headers)


cdef class OtherLog(ChangelogWriter):
    cdef object _log


cpdef ChangelogWriter changelog_writer(object log)


cdef class KeyValueStore:
    cdef readonly object name
    cdef object _topic
    cdef CoreSerde _keys
    cdef CoreSerde _values
    cdef OrderedMap _map
    cdef ChangelogWriter _log
    cdef StoreCache _cache

    cpdef bytes raw_key(self, key)
    @cython.locals(raw=bytes, cache=StoreCache)
    cpdef put(self, key, value)
    cpdef get(self, key)


cdef class TimestampedKeyValueStore:
    cdef readonly object name
    cdef readonly object _topic
    cdef readonly CoreSerde _keys
    cdef readonly CoreSerde _values
    cdef readonly OrderedMap _map
    cdef readonly ChangelogWriter _log
    cdef StoreCache _cache
    cdef readonly object _listener

    cpdef bytes raw_key(self, key)
    cpdef bytes find(self, bytes raw)
    cpdef bytes _kept(self, bytes data, long long timestamp, headers)
    cpdef value_of(self, bytes kept)
    @cython.locals(data=bytes)
    cpdef write(self, bytes raw, value, long long timestamp)
    @cython.locals(cache=StoreCache, old=bytes)
    cpdef keep(self, bytes raw, bytes data, bytes kept, long long timestamp, headers)
