# C types for _rows.py: what turns the plain file into a fast module. The .py alone says what the
# code does; nothing here may change it.

cimport cython
from libc.string cimport memcpy
from moldau.client._batch_builder cimport BatchBuilder
from moldau.client.producer._murmur2 cimport murmur2_chars

cdef unsigned long long _MASK_64
cdef unsigned long long _POSITIVE
cdef Py_ssize_t _RECORD_OVERHEAD
cdef unsigned long long _MIX_1
cdef unsigned long long _MIX_2
cdef bytes _NO_HEADERS
cdef bytes _FILLER
cdef bytes _EIGHT

cdef const unsigned char *_chars(const unsigned char[::1] view) noexcept

cdef const int *_int32s(const unsigned char[::1] view) noexcept

cdef const long long *_int64s(const unsigned char[::1] view) noexcept

@cython.final
cdef class Validity:
    cdef const unsigned char[::1] _owner
    cdef const unsigned char *_bits
    cdef Py_ssize_t _offset
    cdef bint _has_nulls

    @cython.locals(position=Py_ssize_t)
    cdef bint is_null(self, Py_ssize_t row) noexcept

@cython.final
cdef class BinaryInput:
    cdef Validity _validity
    cdef const unsigned char[::1] _ends_owner
    cdef const unsigned char[::1] _data_owner
    cdef const int *_ends
    cdef const unsigned char *data
    cdef Py_ssize_t _offset

    @cython.locals(position=Py_ssize_t)
    cdef Py_ssize_t start(self, Py_ssize_t row) noexcept

    @cython.locals(place=Py_ssize_t, size=Py_ssize_t)
    cdef Py_ssize_t length(self, Py_ssize_t row) noexcept

    @cython.locals(length=Py_ssize_t, start=Py_ssize_t)
    cdef value(self, Py_ssize_t row)

@cython.final
cdef class NumberInput:
    cdef Validity _validity
    cdef const unsigned char[::1] _owner
    cdef const int *_narrow
    cdef const long long *_wide
    cdef Py_ssize_t _offset
    cdef bint _is_wide

    cdef bint is_null(self, Py_ssize_t row) noexcept

    @cython.locals(place=Py_ssize_t, found=cython.longlong)
    cdef long long number(self, Py_ssize_t row) noexcept

@cython.final
cdef class HeaderInput:
    cdef Validity _validity
    cdef const unsigned char[::1] _owner
    cdef const int *_ends
    cdef Py_ssize_t _offset
    cdef BinaryInput _names
    cdef BinaryInput _values
    cdef bytearray tail
    cdef Py_ssize_t tail_size

    @cython.locals(first=Py_ssize_t, last=Py_ssize_t, index=Py_ssize_t)
    cdef int encode(self, Py_ssize_t row) except -1

    @cython.locals(unsigned=cython.ulonglong)
    cdef int _put_number(self, long long number) except -1

    @cython.locals(
        length=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t, target="unsigned char *"
    )
    cdef int _put_value(self, BinaryInput column, Py_ssize_t index) except -1

@cython.final
cdef class Rows:
    cdef readonly Py_ssize_t row_count
    cdef BinaryInput key
    cdef BinaryInput value
    cdef HeaderInput headers
    cdef NumberInput topics
    cdef NumberInput partitions
    cdef NumberInput timestamps
    cdef long long now_ms

    cpdef Py_ssize_t topic_index(self, Py_ssize_t row)

    cdef long long timestamp(self, Py_ssize_t row) noexcept

@cython.final
cdef class Slot:
    cdef readonly object batch
    cdef BatchBuilder builder
    cdef bytearray _numbers
    cdef Py_ssize_t _count

    @cython.locals(size=Py_ssize_t, target="unsigned char *")
    cpdef note(self, long long number)

@cython.final
cdef class Place:
    cdef readonly object topic
    cdef unsigned long long _seed
    cdef readonly Py_ssize_t partition_count
    cdef readonly list slots
    cdef readonly Py_ssize_t sticky_partition
    cdef readonly Py_ssize_t sticky_size

@cython.final
cdef class RowAppender:
    cdef bint _digests
    cdef bint _ignore_keys
    cdef readonly long long row_number
    cdef readonly unsigned long long digest

    @cython.locals(place=Place, row=Py_ssize_t)
    cpdef Py_ssize_t append(self, Rows rows, Py_ssize_t first, list places) except -1

    @cython.locals(
        key=BinaryInput,
        value=BinaryInput,
        headers=HeaderInput,
        key_size=Py_ssize_t,
        value_size=Py_ssize_t,
        is_sticky=cython.bint,
        number=cython.longlong,
        slot=Slot,
        key_chars="const unsigned char *",
        value_chars="const unsigned char *",
        tail="const unsigned char *",
        tail_bytes=bytearray,
        tail_size=Py_ssize_t,
        index=Py_ssize_t,
    )
    cdef bint _append(self, Rows rows, Py_ssize_t row, Place place) except -1

    @cython.locals(hashed=cython.ulonglong, number=cython.longlong)
    cdef long long _partition(
        self, BinaryInput key, Py_ssize_t start, Py_ssize_t size, Py_ssize_t partition_count
    ) noexcept

    @cython.locals(
        checksum=cython.ulonglong,
        headers=HeaderInput,
        tail="const unsigned char *",
        nothing="const unsigned char *",
    )
    cpdef count(self, Rows rows, Py_ssize_t row, Place place)

@cython.locals(length=Py_ssize_t)
cdef unsigned long long _column_checksum(
    BinaryInput column, Py_ssize_t row, unsigned long long seed
) noexcept

@cython.locals(
    mixed=cython.ulonglong, other=cython.ulonglong, end=Py_ssize_t
)
cdef unsigned long long _checksum(
    const unsigned char *data, Py_ssize_t position, Py_ssize_t length, unsigned long long seed
) noexcept nogil

@cython.locals(word=cython.ulonglong)
cdef unsigned long long _word(const unsigned char *data, Py_ssize_t position) noexcept nogil
