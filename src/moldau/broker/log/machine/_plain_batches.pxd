# C types for _plain_batches.py: what turns the plain file into a fast module. The .py alone says
# what the code does; nothing here may change it.

cimport cython
from cpython.memoryview cimport PyMemoryView_Check, PyMemoryView_GET_BUFFER

from moldau.wire._record_codec cimport RecordScan, validate_records

cdef long long _INT64_MAX
cdef long long _INT32_MAX
cdef long long _INT32_MASK
cdef long long _INT32_SIGN
cdef Py_ssize_t _HEADER_BYTES
cdef int _VERSION
cdef int _ZSTD
cdef int _COMPRESSION
cdef int _NOT_PLAIN
cdef int _TRANSACTIONAL
cdef object _new_tuple


cdef inline unsigned char *bytes_of(object view) except NULL:
    cdef Py_buffer *buffer
    if PyMemoryView_Check(view):
        buffer = PyMemoryView_GET_BUFFER(view)
        if buffer.ndim == 1 and buffer.itemsize == 1 and buffer.strides[0] == 1:
            return <unsigned char *>buffer.buf
    raise TypeError("not a memoryview of bytes that follow each other")


@cython.locals(number=cython.longlong)
cdef long long _int32(const unsigned char *data, Py_ssize_t position) noexcept nogil

@cython.locals(high=cython.longlong)
cdef long long _int64(const unsigned char *data, Py_ssize_t position) noexcept nogil

@cython.locals(size=Py_ssize_t, data="const unsigned char *")
cpdef int attributes_of_single(view) except -2

cdef class PlainBatches:
    cdef long long _size_max
    cdef long long _before_max_ms
    cdef long long _after_max_ms
    cdef bint _compacted

    @cython.locals(
        size=Py_ssize_t,
        data="unsigned char *",
        attributes=int,
        count=cython.longlong,
        producer_id=cython.longlong,
        sequence=cython.longlong,
        base_timestamp=cython.longlong,
        max_timestamp=cython.longlong,
        scan=RecordScan,
        index=int,
        first_largest=cython.longlong,
    )
    cpdef accept(self, view, long long offset, long long now_ms, long long leader_epoch)
