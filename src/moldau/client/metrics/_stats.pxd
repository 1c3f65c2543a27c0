# C types for stats.py: what turns the plain file into a fast module. The .py alone says what the
# code does; nothing here may change it.

cimport cython

cdef class Windows:
    cdef readonly long samples
    cdef readonly long long window_ms

cdef class Stat:
    cpdef void record(self, Windows windows, double value, long long now_ms)
    cpdef double measure(self, Windows windows, long long now_ms)

cdef class _Sample:
    cdef public long long count
    cdef public long long start_ms
    cdef public long long last_ms
    cdef public double value
    cpdef void reset(self, double initial, long long now_ms)

cdef class SampledStat(Stat):
    cdef list _samples
    cdef Py_ssize_t _current
    cdef public double initial
    cdef public long long window_ms

    @cython.locals(sample=_Sample, window_ms=cython.longlong)
    cpdef void record(self, Windows windows, double value, long long now_ms)
    @cython.locals(sample=_Sample, window_ms=cython.longlong, age_ms=cython.longlong)
    cpdef void purge(self, Windows windows, long long now_ms)
    cpdef void update(self, _Sample sample, double value)
    cpdef double combine(self)
    cdef _Sample _advance(self, Windows windows, long long now_ms)

cdef class WindowedSum(SampledStat):
    pass

cdef class WindowedCount(SampledStat):
    pass

cdef class Avg(SampledStat):
    pass

cdef class Max(SampledStat):
    pass

cdef class Min(SampledStat):
    pass

cdef class Rate(Stat):
    cdef SampledStat _stat
    cdef double _unit_ms
    cdef long long _window_ms

    @cython.locals(
        value=cython.double,
        window_ms=cython.longlong,
        elapsed_ms=cython.longlong,
        missing=cython.longlong,
    )
    cpdef double measure(self, Windows windows, long long now_ms)

cdef class CumulativeSum(Stat):
    cdef double _total

cdef class CumulativeCount(CumulativeSum):
    pass

cdef class Value(Stat):
    cdef double _value

cdef class Recorder:
    cdef Windows _windows
    cdef object _now_ms
    cdef tuple _parents
    cdef list _stats
    cdef object _lock
    cdef public long long last_ms

    @cython.locals(now=cython.longlong, stat=Stat, parent=Recorder)
    cpdef record(self, double value=*, long long now_ms=*)
