# C types for _serdes.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams.longs cimport followed, pack_long, unpack_long


cdef class CoreSerde:
    cpdef serialize(self, topic, value)
    cpdef deserialize(self, topic, data)
    cpdef deserialize_after(self, topic, bytes data, Py_ssize_t start)


cdef class OtherSerde(CoreSerde):
    cdef readonly object inner
    cdef object _serialize
    cdef object _deserialize


cpdef CoreSerde core_serde(object serde)


cdef class BytesSerde(CoreSerde):
    pass


cdef class StringSerde(CoreSerde):
    @cython.locals(text=str)
    cpdef serialize(self, topic, value)
    @cython.locals(raw=bytes)
    cpdef deserialize(self, topic, data)


cdef class LongSerde(CoreSerde):
    pass


cdef class JsonSerde(CoreSerde):
    pass


cdef class DefaultSerde(CoreSerde):
    cdef readonly object what
    cdef object _inner
    cdef CoreSerde _core


cdef class TimeWindowedSerde(CoreSerde):
    cdef CoreSerde _inner
    cdef object _size_ms

    cpdef bytes base_key(self, topic, value)
    @cython.locals(raw=bytes)
    cpdef deserialize(self, topic, data)


cdef class SessionWindowedSerde(CoreSerde):
    cdef CoreSerde _inner

    cpdef bytes base_key(self, topic, value)
    @cython.locals(raw=bytes, size=Py_ssize_t)
    cpdef deserialize(self, topic, data)
