# C types for _schema_ids.py; nothing here may change what it does.

cimport cython
from moldau.wire.varint cimport varint, varint_size

cdef Py_ssize_t IDS_MAX
cdef Py_ssize_t BAD_MAX

cdef class SchemaIds:
    cdef public dict key_ids
    cdef public dict value_ids
    cdef public list bad_keys
    cdef public list bad_values
    cdef public bint sound

@cython.locals(high=cython.longlong)
cdef long long _id_at(const unsigned char *data, Py_ssize_t position) noexcept nogil

@cython.locals(
    index=Py_ssize_t,
    size=Py_ssize_t,
    length=cython.longlong,
    record_end=Py_ssize_t,
    schema_id=cython.longlong,
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
