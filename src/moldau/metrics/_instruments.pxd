# C types for _instruments.py: what turns the plain file into a fast module. The .py alone says what
# the code does; nothing here may change it.

cimport cython

cdef double STEP_SECONDS
cdef double DECAY_PER_SECOND
cdef double RESCALE_SECONDS
cdef long long STEPS_MAX
cdef double UNITS
cdef long long SUB_BUCKETS
cdef Py_ssize_t BUCKETS
cdef double VALUE_MAX
cdef double _ALPHA_1
cdef double _ALPHA_5
cdef double _ALPHA_15

cdef class Meter

cdef class Ticker:
    cdef public double start_s
    cdef public double now_s
    cdef public long long step
    cdef public double weight
    cdef public double landmark_s
    cdef list marked

    @cython.locals(meter=Meter)
    cpdef void settle(self)

cdef class Meter:
    cdef Ticker _ticker
    cdef Meter _parent
    cdef double _scale
    cdef double _start_s
    cdef long long _step
    cdef long long _marked
    cdef double _uncounted
    cdef bint _initialized
    cdef double _rate_1
    cdef double _rate_5
    cdef double _rate_15
    cdef long long _count

    cpdef void mark(self, long long events=*)
    @cython.locals(meter=Meter, events=cython.longlong)
    cdef void _settle(self)
    @cython.locals(steps=cython.longlong, rate=cython.double)
    cdef void _advance(self)
    cpdef double rate(self, int minutes)

cdef class Histogram:
    cdef Ticker _ticker
    cdef Histogram _whole
    cdef double _landmark_s
    cdef double[::1] _buckets
    cdef double _weight
    cdef double _squares
    cdef long long _recorded
    cdef public double sum
    cdef double _max
    cdef double _min

    @cython.locals(index=cython.Py_ssize_t, weight=cython.double)
    cpdef void update(self, double value)
    @cython.locals(index=cython.Py_ssize_t, weight=cython.double, longer=cython.double)
    cpdef void lengthen(self, double value, double more)
    @cython.locals(index=cython.Py_ssize_t, weight=cython.double, total=cython.double, factor=cython.double)
    cdef void _rescale(self)
    @cython.locals(index=cython.Py_ssize_t, last=cython.Py_ssize_t, weight=cython.double, wanted=cython.double, seen=cython.double, zeros=cython.double)
    cpdef double percentile(self, double fraction)
    @cython.locals(whole=Histogram)
    cdef double _zeros_weight(self)

@cython.locals(units=cython.longlong, shift=cython.Py_ssize_t)
cpdef Py_ssize_t bucket_of(double value)
@cython.locals(units=cython.Py_ssize_t, shift=cython.Py_ssize_t)
cpdef double value_of(Py_ssize_t index)

cdef class RequestTimes:
    cdef RequestTimes _parent
    cdef Histogram _total
    cdef Histogram _local
    cdef Histogram _remote
    cdef Histogram _request_queue
    cdef Histogram _response_queue
    cdef Histogram _response_send
    cdef Histogram _bytes
    cdef Meter _none
    cdef public long long count

    cpdef void record(self, long long local_ns, long long remote_ns, long long size, long long failed=*)
    cpdef void queued(self, long long total_ns, long long more_ns)
    cpdef void held_back(self, long long total_ns, long long more_ns)
    cpdef void sent(self, long long total_ns, long long more_ns)

cdef class ApiTimes:
    cdef Meter _requests
    cdef readonly RequestTimes times
    cdef readonly long long answered_ns
    cdef readonly long long total_ns

    @cython.locals(now_ns=cython.longlong)
    cpdef void answered(self, long long started_ns, long long size)

cdef class Flow:
    cdef readonly Meter operations
    cdef readonly Meter size
    cdef readonly Meter records

    cpdef void passed(self, long long size)
    cpdef void appended(self, long long size, long long base_offset, long long last_offset)
