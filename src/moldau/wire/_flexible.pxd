# C types for _flexible.py: what turns the plain file into a fast module. The .py alone says what the
# code does; nothing here may change it.

cimport cython
from cpython.memoryview cimport PyMemoryView_Check, PyMemoryView_GET_BUFFER


cdef inline int byte_at(object frame, Py_ssize_t position) except -1:
    cdef Py_buffer *view
    if not PyMemoryView_Check(frame) or position < 0:
        return frame[position]
    view = PyMemoryView_GET_BUFFER(frame)
    if view.ndim != 1 or view.itemsize != 1 or view.strides[0] != 1:
        return frame[position]
    if position >= view.len:
        raise IndexError("index out of bounds on dimension 1")
    return (<unsigned char *>view.buf)[position]


@cython.locals(byte=cython.longlong, value=cython.longlong, count=int)
cpdef tuple read_varint(frame, Py_ssize_t position)

@cython.locals(out=bytearray)
cpdef bytes varint(long long value)

@cython.locals(count=cython.longlong, size=cython.longlong, at=cython.longlong, _=cython.longlong)
cpdef Py_ssize_t skip_tagged_fields(frame, Py_ssize_t position) except -1

@cython.locals(length=cython.longlong, at=Py_ssize_t)
cpdef tuple read_compact_string(frame, Py_ssize_t position)

@cython.locals(end=Py_ssize_t)
cpdef tuple read_text(frame, Py_ssize_t position, Py_ssize_t length)

cpdef bytes compact_string(text)
