# C types for _decoder.py: what turns the plain file into a fast module. The .py alone says what
# the code does; nothing here may change it.

cimport cython
from cpython.bytearray cimport PyByteArray_Resize
from libc.string cimport memcpy
from moldau.wire.varint cimport varint, varint_length, varlong

cdef extern from "Python.h":
    bytearray PyByteArray_FromStringAndSize(const char *chars, Py_ssize_t size)

cdef long long _TIMESTAMP_MAX
cdef long long _TIMESTAMP_MIN
cdef long long _INT32_MAX
cdef Py_ssize_t _DATA_CAPACITY_MIN

cdef bytearray _new(Py_ssize_t size)

@cython.locals(chars="unsigned char *")
cdef int *_int32s(bytearray buffer)

@cython.locals(chars="unsigned char *")
cdef long long *_int64s(bytearray buffer)

@cython.locals(cursor=Py_ssize_t, found=cython.int)
cdef bint _is_ascii(const unsigned char *data, Py_ssize_t position, Py_ssize_t length) noexcept nogil

# Holds nothing but numbers and buffers, so the collector need not visit it.
@cython.no_gc
@cython.final
cdef class BinaryBuffers:
    cdef bytearray _ends_buffer
    cdef bytearray _validity
    cdef bytearray _data
    cdef int *_ends
    cdef unsigned char *_bits
    cdef unsigned char *_target
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _count_max
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t null_count

    @cython.locals(needed=Py_ssize_t, capacity=Py_ssize_t)
    cdef int reserve(self, Py_ssize_t size) except -1

    @cython.locals(needed=Py_ssize_t, count_max=Py_ssize_t, used=Py_ssize_t, ends=bytearray)
    cdef int reserve_count(self, Py_ssize_t count) except -1

    @cython.locals(count=Py_ssize_t, size=Py_ssize_t)
    cdef void append(
        self, const unsigned char *data, Py_ssize_t position, Py_ssize_t length
    ) noexcept

    cdef column(self)

@cython.final
cdef class HeaderBuffers:
    cdef bytearray _ends_buffer
    cdef bytearray _validity
    cdef int *_ends
    cdef unsigned char *_bits
    cdef BinaryBuffers _names
    cdef BinaryBuffers _values
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t row_count
    cdef readonly Py_ssize_t null_count

    @cython.locals(
        names=BinaryBuffers,
        values=BinaryBuffers,
        row=Py_ssize_t,
        _=Py_ssize_t,
        size=Py_ssize_t,
        length=cython.longlong,
        text=bytes,
    )
    cdef int append(
        self,
        const unsigned char *data,
        Py_ssize_t position,
        Py_ssize_t count,
        Py_ssize_t size_max,
    ) except -1

    cdef column(self)

cdef class ColumnDecoder:
    cdef object _topic
    cdef int _partition
    cdef long long _end
    cdef Py_ssize_t _rows_max
    cdef Py_ssize_t _bytes_max
    cdef bint _include_headers
    cdef bint _check_crcs
    cdef bint _read_committed
    cdef object _data
    cdef Py_ssize_t _part_position
    cdef object _aborted
    cdef set _aborted_producers
    cdef object _section
    cdef const unsigned char[::1] _view
    cdef Py_ssize_t _position
    cdef Py_ssize_t _section_end
    cdef Py_ssize_t _left
    cdef long long _base_offset
    cdef long long _last_offset
    cdef long long _base_timestamp
    cdef long long _append_time
    cdef int _timestamp_type
    cdef BinaryBuffers _keys
    cdef BinaryBuffers _values
    cdef HeaderBuffers _headers
    cdef bytearray _offsets_buffer
    cdef bytearray _timestamps_buffer
    cdef bytearray _types_buffer
    cdef long long *_offsets
    cdef long long *_timestamps
    cdef int *_types
    cdef readonly long long next_offset
    cdef readonly Py_ssize_t row_count

    @cython.locals(rows=Py_ssize_t)
    cdef _start_columns(self, Py_ssize_t key_capacity, Py_ssize_t value_capacity)

    @cython.locals(
        size=Py_ssize_t,
        position=Py_ssize_t,
        batch_size=Py_ssize_t,
        last_offset=cython.longlong,
        dropped=cython.bint,
        fields=tuple,
    )
    cdef bint _open_next(self) except -1

    @cython.locals(
        base_offset=cython.longlong,
        crc=cython.ulonglong,
        attributes=cython.int,
        base_timestamp=cython.longlong,
        record_count=cython.longlong,
        start=Py_ssize_t,
        end=Py_ssize_t,
        is_append_time=cython.bint,
    )
    cdef int _open_batch(self, tuple fields, Py_ssize_t position, Py_ssize_t size) except -1

    @cython.locals(last_offset=cython.longlong, attributes=cython.int, producer_id=cython.longlong)
    cdef bint _follow_transaction(self, tuple fields, Py_ssize_t position) except -1

    @cython.locals(
        chars="const unsigned char *",
        keys=BinaryBuffers,
        values=BinaryBuffers,
        headers=HeaderBuffers,
        with_headers=cython.bint,
        position=Py_ssize_t,
        start=Py_ssize_t,
        left=Py_ssize_t,
        row=Py_ssize_t,
        size=Py_ssize_t,
        length=cython.longlong,
        record_end=Py_ssize_t,
        timestamp=cython.longlong,
        offset=cython.longlong,
        next_offset=cython.longlong,
    )
    cdef bint _append_rows(self) except -1
