# C types for _fetch_codec.py: what turns the plain file into a fast module. The .py alone says what
# the code does; nothing here may change it.

cimport cython

from moldau.wire._flexible cimport (
    byte_at,
    compact_string,
    read_compact_string,
    read_text,
    read_varint,
    skip_tagged_fields,
    varint,
)

cpdef decode_fetch(int version, frame, Py_ssize_t position)

@cython.locals(count=Py_ssize_t, _=Py_ssize_t, topics=list, forgotten=list)
cdef _decode_classic(int version, frame, Py_ssize_t position)
cdef tuple _read_count(frame, Py_ssize_t position)
cdef tuple _read_name(frame, Py_ssize_t position)
@cython.locals(end=Py_ssize_t)
cdef tuple _classic_partitions(int version, frame, Py_ssize_t position)
@cython.locals(count=Py_ssize_t, _=Py_ssize_t, topics=list, forgotten=list)
cdef _decode_flexible(int version, frame, Py_ssize_t position)
@cython.locals(count=cython.longlong)
cdef tuple _read_compact_count(frame, Py_ssize_t position)
@cython.locals(end=Py_ssize_t)
cdef tuple _read_topic_key(int version, frame, Py_ssize_t position)
@cython.locals(count=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t, partitions=list, _=Py_ssize_t)
cdef tuple _flexible_partitions(frame, Py_ssize_t position)

@cython.locals(
    flexible=cython.bint, out=list, piece=bytearray, records_size=Py_ssize_t, small_size=Py_ssize_t
)
cpdef list encode_fetch_response(
    int version,
    int correlation_id,
    int session_id,
    int error_code,
    topics,
    node_endpoints=*,
    int throttle_time_ms=*,
)
cdef Py_ssize_t _head_size(int version) except -1
cdef _put_topic(bytearray piece, int version, topic)
cdef _put_empty(bytearray piece, int version, data)
cdef _put_partition(bytearray piece, int version, data)
cdef _put_partition_tags(bytearray piece, data)
