# C types for _murmur2.py: what turns the plain file into a fast module. The .py alone says what the
# code does; nothing here may change it.

cimport cython

cdef unsigned long long _MASK_32
cdef unsigned long long _POSITIVE
cdef unsigned long long _SEED
cdef unsigned long long _M

@cython.locals(data="const unsigned char *")
cpdef unsigned long long murmur2(bytes key) except? 1

@cython.locals(
    whole=Py_ssize_t,
    position=Py_ssize_t,
    left=Py_ssize_t,
    h=cython.ulonglong,
    k=cython.ulonglong,
)
cdef unsigned long long murmur2_chars(const unsigned char *data, Py_ssize_t length) noexcept nogil

cpdef Py_ssize_t partition_for_key(bytes key, Py_ssize_t partition_count) except -1
