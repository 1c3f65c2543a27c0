# C types for _batch_builder.py: what turns the plain file into a fast module. The .py alone says
# what the code does; nothing here may change it.

cimport cython
from cpython.bytearray cimport PyByteArray_Resize
from libc.string cimport memcpy

cdef long long _INT32_MAX
cdef long long _INT64_MAX
cdef Py_ssize_t _HEADER_SIZE
cdef Py_ssize_t _CAPACITY_MIN

cdef unsigned long long _zigzag(long long value) noexcept nogil

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _size_of(unsigned long long unsigned) noexcept nogil

cdef Py_ssize_t _put(
    unsigned char *out, Py_ssize_t position, unsigned long long unsigned
) noexcept nogil

cdef Py_ssize_t _put_bytes(
    unsigned char *out, Py_ssize_t position, const unsigned char *content, Py_ssize_t size
) noexcept nogil

# Holds nothing but numbers, buffers and a list of buffers, so the collector need not visit it.
@cython.no_gc
cdef class BatchBuilder:
    cdef bytearray _buffer
    cdef bytearray _packed
    cdef list _spares
    cdef unsigned char *_target
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _position
    cdef int _codec
    cdef object _compression_level
    cdef double _factor
    cdef readonly Py_ssize_t limit_bytes
    cdef readonly Py_ssize_t record_count
    cdef readonly long long base_timestamp
    cdef readonly long long max_timestamp
    cdef readonly bint closed

    @cython.locals(
        tail=bytes,
        key_size=Py_ssize_t,
        value_size=Py_ssize_t,
        key_bytes=bytes,
        value_bytes=bytes,
    )
    cpdef Py_ssize_t append(
        self, long long timestamp, object key, object value, object headers=*
    ) except -2

    @cython.locals(
        index=Py_ssize_t,
        delta=cython.ulonglong,
        size=cython.longlong,
        position=Py_ssize_t,
        needed=Py_ssize_t,
        target="unsigned char *",
    )
    cdef Py_ssize_t append_chars(
        self,
        long long timestamp,
        const unsigned char *key,
        Py_ssize_t key_size,
        const unsigned char *value,
        Py_ssize_t value_size,
        const unsigned char *tail,
        Py_ssize_t tail_size,
    ) except -2

    @cython.locals(capacity=Py_ssize_t)
    cdef int _grow(self, Py_ssize_t needed) except -1
