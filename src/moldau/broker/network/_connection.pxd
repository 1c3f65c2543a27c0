# C types for _connection.py: what turns the plain file into a fast module. The .py alone says what
# the code does; nothing here may change it.

cimport cython

from moldau.broker.network._sending cimport Sender
from moldau.broker.network.machine._frames cimport FrameDecoder

cdef class Connection:
    cdef object _host
    cdef object _channel
    cdef int _fd
    cdef object _has_pending
    cdef object _receiver
    cdef FrameDecoder _decoder
    cdef Sender _sender
    cdef readonly object unsent
    cdef object _work
    cdef object _appended_requests
    cdef object _appended
    cdef object _held
    cdef bint _yielding
    cdef object _muted
    cdef bint _busy
    cdef bint _paused
    cdef bint _stream_ended
    cdef bint _stopping
    cdef bint _closed
    cdef readonly object info
    cdef public object seen_tick

    @cython.locals(decoder=FrameDecoder, count=Py_ssize_t)
    cpdef _on_readable(self)
    @cython.locals(answers=list, sent=cython.bint)
    cdef _handle_frames(self, bint received=*)
    @cython.locals(sent=cython.bint, _=int)
    cdef bint _answer_frames(self, list answers) except -1
    cdef _next_in_turn(self)
    cdef _send(self, list buffers)
