# C types for _schema_ids.py; nothing here may change what it does.

cimport cython
from moldau.wire.varint cimport varint, varint_size

cdef Py_ssize_t IDS_MAX
cdef Py_ssize_t BAD_MAX
cdef const unsigned char *KEY_HEADER
cdef const unsigned char *VALUE_HEADER
cdef Py_ssize_t KEY_HEADER_LENGTH
cdef Py_ssize_t VALUE_HEADER_LENGTH

cdef class SchemaIds:
    cdef public dict key_ids
    cdef public dict value_ids
    cdef public list bad_keys
    cdef public list bad_values
    cdef public bint sound
    cdef Py_ssize_t key_header
    cdef Py_ssize_t key_header_length
    cdef Py_ssize_t value_header
    cdef Py_ssize_t value_header_length

@cython.locals(high=cython.longlong)
cdef long long _id_at(const unsigned char *data, Py_ssize_t position) noexcept nogil

@cython.locals(at=Py_ssize_t)
cdef bint _is_text(
    const unsigned char *data, Py_ssize_t position, Py_ssize_t length, const unsigned char *text,
    Py_ssize_t text_length
) noexcept nogil

@cython.locals(
    count=cython.longlong,
    size=Py_ssize_t,
    name=Py_ssize_t,
    name_length=cython.longlong,
    length=cython.longlong,
)
cdef bint _find_headers(
    SchemaIds found, const unsigned char *data, Py_ssize_t position, Py_ssize_t end
)

cdef _note(dict ids, object name, Py_ssize_t index)

@cython.locals(
    schema_id=cython.longlong, header=Py_ssize_t, header_length=Py_ssize_t, ids=dict, bad=list
)
cdef long long _note_side(
    SchemaIds found,
    bint is_key,
    const unsigned char *data,
    Py_ssize_t position,
    long long length,
    Py_ssize_t index,
    long long last,
) except? -2

@cython.locals(
    index=Py_ssize_t,
    size=Py_ssize_t,
    length=cython.longlong,
    key=Py_ssize_t,
    key_length=cython.longlong,
    value=Py_ssize_t,
    value_length=cython.longlong,
    record_end=Py_ssize_t,
    last_key=cython.longlong,
    last_value=cython.longlong,
)
cdef bint _collect(
    SchemaIds found,
    const unsigned char *data,
    Py_ssize_t position,
    Py_ssize_t end,
    Py_ssize_t record_count,
    bint keys,
    bint values,
)

@cython.locals(found=SchemaIds, view="const unsigned char[::1]")
cpdef SchemaIds schema_ids(
    object buffer, Py_ssize_t position, Py_ssize_t end, Py_ssize_t record_count, bint keys,
    bint values
)
