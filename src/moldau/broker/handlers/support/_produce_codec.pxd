# C types for _produce_codec.py: what turns the plain file into a fast module. The .py alone says what
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

@cython.locals(
    null=int, topics=cython.longlong, length=cython.longlong, partitions=cython.longlong,
    size=cython.longlong, end=Py_ssize_t,
)
cpdef decode_single_produce(int version, frame, Py_ssize_t position)
@cython.locals(
    null=int, topics=int, length=Py_ssize_t, partitions=int, size=cython.longlong,
    end=Py_ssize_t, name_end=Py_ssize_t,
)
cdef _decode_single_flexible(int version, frame, Py_ssize_t position)
@cython.locals(count=Py_ssize_t, _=Py_ssize_t, topics=list)
cdef _decode_flexible(frame, Py_ssize_t position, bint topic_ids)
@cython.locals(
    size=cython.longlong, end=Py_ssize_t, records_end=Py_ssize_t, partitions=list, _=Py_ssize_t
)
cdef tuple _flexible_partitions(frame, Py_ssize_t position, Py_ssize_t count)

@cython.locals(length=Py_ssize_t, size=Py_ssize_t, name=bytes)
cpdef bytes encode_produce_success(
    int version,
    int correlation_id,
    topic,
    index,
    base_offset,
    log_append_time_ms,
    log_start_offset,
)
@cython.locals(flexible=cython.bint, out=bytearray)
cpdef bytes encode_produce_response(
    int version,
    int correlation_id,
    topics,
    node_endpoints=*,
    throttle_time_ms=*,
)
cdef _put_topic(bytearray out, int version, topic)
cdef _put_answer(bytearray out, int version, answer)
cdef _put_text(bytearray out, text, bint flexible)
