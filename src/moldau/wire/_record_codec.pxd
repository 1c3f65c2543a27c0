# C types for _record_codec.py: what turns the plain file into a fast module. The .py alone says
# what the code does; nothing here may change it.

cimport cython
from libc.string cimport memcpy
from moldau.wire.varint cimport varint, varint_size, varlong

cdef long long _INT32_MAX
cdef long long _INT64_MAX
cdef long long _INT64_MIN
cdef long long _GROWTH_MAX

# Bytes, text and tuples of them cannot form cycles, so the collector need not visit them.
@cython.no_gc
cdef class Record:
    cdef public long long offset
    cdef public long long timestamp
    cdef public object key
    cdef public object value
    cdef public object headers

@cython.no_gc
cdef class RecordScan:
    cdef public int problem
    cdef public long index
    cdef public long long max_timestamp
    cdef public long max_timestamp_index
    cdef public long null_key_count
    cdef public long bad_timestamp_count
    cdef public bint dense
    cdef public long last_offset_delta

@cython.locals(_=Py_ssize_t, size=Py_ssize_t, length=cython.longlong)
cdef Py_ssize_t _scan_headers(
    const unsigned char *data, Py_ssize_t position, Py_ssize_t record_end, Py_ssize_t count
) noexcept nogil

@cython.locals(
    max_timestamp=cython.longlong,
    max_timestamp_index=Py_ssize_t,
    null_keys=Py_ssize_t,
    bad_timestamps=Py_ssize_t,
    dense=cython.bint,
    offset_delta=cython.longlong,
    index=Py_ssize_t,
    size=Py_ssize_t,
    length=cython.longlong,
    record_end=Py_ssize_t,
    delta=cython.longlong,
    timestamp=cython.longlong,
    count=cython.longlong,
)
cdef int _scan(
    RecordScan scan,
    const unsigned char *data,
    Py_ssize_t position,
    Py_ssize_t end,
    Py_ssize_t record_count,
    long long base_timestamp,
    long long timestamp_min,
    long long timestamp_max,
) noexcept

@cython.locals(scan=RecordScan, view="const unsigned char[::1]")
cpdef RecordScan validate_records(
    object buffer,
    Py_ssize_t position,
    Py_ssize_t end,
    Py_ssize_t record_count,
    long long base_timestamp,
    long long timestamp_min=*,
    long long timestamp_max=*,
)

@cython.locals(
    _=Py_ssize_t, size=Py_ssize_t, length=cython.longlong, name=bytes, headers=list
)
cdef tuple _read_headers(const unsigned char *chars, Py_ssize_t position, Py_ssize_t count)

@cython.locals(
    chars="const unsigned char *",
    records=list,
    overridden=cython.bint,
    append_time=cython.longlong,
    _=Py_ssize_t,
    record=Record,
    size=Py_ssize_t,
    length=cython.longlong,
    count=cython.longlong,
)
cpdef list decode_records(
    bytes data,
    Py_ssize_t position,
    Py_ssize_t end,
    Py_ssize_t record_count,
    long long base_offset,
    long long base_timestamp,
    object log_append_time=*,
)

cdef unsigned long long _zigzag(long long value) noexcept nogil

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _size_of(unsigned long long unsigned) noexcept nogil

cdef Py_ssize_t _put(
    unsigned char *out, Py_ssize_t position, unsigned long long unsigned
) noexcept nogil

@cython.locals(source="const unsigned char *")
cdef Py_ssize_t _put_bytes(
    unsigned char *out, Py_ssize_t position, bytes content, Py_ssize_t size
)

@cython.locals(scratch=bytearray, out=bytearray, encoded=bytes)
cdef bytes _encode_headers(object headers)

@cython.locals(
    out=bytearray,
    capacity=Py_ssize_t,
    remaining=Py_ssize_t,
    growth=cython.longlong,
    target="unsigned char *",
    position=Py_ssize_t,
    delta=cython.longlong,
    previous=cython.longlong,
    max_timestamp=cython.longlong,
    timestamp=cython.longlong,
    key_size=Py_ssize_t,
    value_size=Py_ssize_t,
    tail=bytes,
    tail_size=Py_ssize_t,
    time_delta=cython.ulonglong,
    size=cython.longlong,
)
cpdef tuple encode_records(
    object records, Py_ssize_t prefix_size, long long base_offset, long long base_timestamp
)
