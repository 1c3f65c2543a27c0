# C types for _plain_packets.py: what turns the plain file into a fast module. The .py alone says
# what the code does; nothing here may change it.

cimport cython

cdef int _V5

@cython.locals(
    data=bytes,
    view="const unsigned char *",
    size=Py_ssize_t,
    messages=list,
    acknowledged=list,
    at=Py_ssize_t,
    first=cython.int,
    length=Py_ssize_t,
    start=Py_ssize_t,
    end=Py_ssize_t,
    topic=Py_ssize_t,
    after=Py_ssize_t,
    body=Py_ssize_t,
    packet_id=cython.int,
)
cpdef tuple plain_packets(bytes data, int version, Py_ssize_t size_max, Py_ssize_t count_max)

@cython.locals(view="unsigned char *", at=Py_ssize_t, number=cython.int)
cpdef bytes pubacks(list packet_ids)
