# The functions of longs.py for compiled modules, which inline them. Nothing here may differ from
# the .py.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy


cdef inline void _store(unsigned char *data, unsigned long long value) noexcept:
    cdef int place
    for place in range(8):
        data[7 - place] = value & 0xFF
        value >>= 8


cdef inline bytes pack_long(long long value):
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, 8)
    _store(<unsigned char *>PyBytes_AS_STRING(packed), <unsigned long long>value)
    return packed


cdef inline long long unpack_long(bytes data, Py_ssize_t start) except? -1:
    cdef unsigned char *found = <unsigned char *>PyBytes_AS_STRING(data)
    cdef unsigned long long value = 0
    cdef int place
    if PyBytes_GET_SIZE(data) < start + 8:
        raise ValueError(f"8 bytes are wanted at {start}, there are {len(data)} in all")
    for place in range(8):
        value = (value << 8) | found[start + place]
    return <long long>value


cdef inline bytes prefixed(long long value, bytes data):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, 8 + size)
    _store(<unsigned char *>PyBytes_AS_STRING(packed), <unsigned long long>value)
    memcpy(PyBytes_AS_STRING(packed) + 8, PyBytes_AS_STRING(data), size)
    return packed


cdef inline bytes followed(bytes data, long long value):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, 8 + size)
    memcpy(PyBytes_AS_STRING(packed), PyBytes_AS_STRING(data), size)
    _store(<unsigned char *>PyBytes_AS_STRING(packed) + size, <unsigned long long>value)
    return packed


cdef inline bytes window_key(bytes data, long long start, unsigned int sequence):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, 12 + size)
    cdef unsigned char *place = <unsigned char *>PyBytes_AS_STRING(packed)
    memcpy(place, PyBytes_AS_STRING(data), size)
    _store(place + size, <unsigned long long>start)
    place[size + 8] = sequence >> 24
    place[size + 9] = (sequence >> 16) & 0xFF
    place[size + 10] = (sequence >> 8) & 0xFF
    place[size + 11] = sequence & 0xFF
    return packed
