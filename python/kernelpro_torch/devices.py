# SPDX-License-Identifier: Apache-2.0
"""Clocks, flushes and copies on a device, for code that shares a process with a candidate.

Driver functions are called through ctypes: PyTorch's own ways take longer.
"""

import ctypes
import time

import torch

from . import buffers

_clock = time.perf_counter_ns
_copy = torch.Tensor.copy_
_sum = torch.Tensor.sum
_data_ptr = torch.Tensor.data_ptr
_is_contiguous = torch.Tensor.is_contiguous
_fill = torch.Tensor.fill_

FLUSH_AT_LEAST = 256 << 20  # and at least four times L2
_MOST_FLUSHES = 60  # about 4 ms on an H200


def make(name):
    """`name`: "cuda" or "cpu"."""
    return Cuda() if name == "cuda" else Cpu()


class Cpu:
    name = "cpu"

    def __init__(self):
        self.device = torch.device("cpu")
        self._little = torch.zeros(64)
        self._flush = torch.ones(16 << 20, dtype=torch.int32)

    def synchronize(self):
        pass

    def enter(self):
        """Call before the candidate: makes the default stream current, whatever it set."""

    def rewrite_flush(self, key):
        _fill(self._flush, key % 1000)

    def flush(self):
        _sum(self._flush)

    def begin(self, lead_us):
        self.flush()
        self._begin = _clock()

    def end(self):
        self._end = _clock()

    def between(self):
        """Microseconds from begin to end."""
        return (self._end - self._begin) / 1e3

    def copy(self, to, source):
        with torch.no_grad():
            _copy(to, source)

    def little_work(self):
        """A piece of work, as small as they come, and its end."""
        _fill(self._little, 1)

    def free_bytes(self):
        return 1 << 62


class Cuda:
    name = "cuda"

    def __init__(self):
        buffers.driver()  # makes torch's context current
        cuda = ctypes.CDLL("libcuda.so.1")  # our own handle, so that nobody else sets its types
        self.device = torch.device("cuda", torch.cuda.current_device())
        self._default = torch.cuda.default_stream(self.device)
        self._set_stream = torch.cuda.set_stream
        handle = ctypes.c_void_p
        self._record = _function(cuda, "cuEventRecord", handle, handle)
        self._wait = _function(cuda, "cuEventSynchronize", handle)
        self._elapsed = _function(cuda, "cuEventElapsedTime", handle, handle, handle)
        self._context_synchronize = _function(cuda, "cuCtxSynchronize")
        self._copy_bytes = _function(cuda, "cuMemcpyDtoDAsync_v2", ctypes.c_ulonglong,
                                     ctypes.c_ulonglong, ctypes.c_size_t, handle)
        self._set_words = _function(cuda, "cuMemsetD32Async", ctypes.c_ulonglong, ctypes.c_uint,
                                    ctypes.c_size_t, handle)
        self._memory = _function(cuda, "cuMemGetInfo_v2", handle, handle)
        create = _function(cuda, "cuEventCreate", handle, ctypes.c_uint)
        self._begin, self._end = handle(), handle()
        create(ctypes.byref(self._begin), 0)
        create(ctypes.byref(self._end), 0)
        self._little = torch.zeros(64, device=self.device)
        self._flush = None
        self._flush_us = 50.0

    def _make_flush(self):
        l2 = getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", 64 << 20)
        words = max(FLUSH_AT_LEAST, 4 * l2) // 8
        self._flush = torch.ones(words, dtype=torch.int64, device=self.device)
        for _ in range(3):  # the first loads the kernel
            self.synchronize()
            self._record(self._begin, None)
            self.flush()
            self._record(self._end, None)
            self._flush_us = max(10.0, self._between())

    def synchronize(self):
        self._context_synchronize()

    def enter(self):
        self._set_stream(self._default)

    def rewrite_flush(self, key):
        """Call before the first flush."""
        if self._flush is None:
            self._make_flush()
        self._set_words(_data_ptr(self._flush), (key & 0x3fffffff) | 1, self._flush.numel() * 2,
                        None)

    def flush(self):
        """Reads a buffer larger than L2 (writing would leave dirty lines behind)."""
        _sum(self._flush)

    def busy(self, microseconds):
        """Keeps the default stream busy at least this long, up to _MOST_FLUSHES flushes."""
        for _ in range(min(_MOST_FLUSHES, 1 + int(microseconds / self._flush_us))):
            self.flush()

    def begin(self, lead_us):
        """Starts the clock on the default stream behind a flush of at least `lead_us`: work
        submitted within that time is timed without host overhead."""
        self.busy(lead_us)
        self._record(self._begin, None)

    def end(self):
        self._record(self._end, None)

    def between(self):
        """Microseconds from begin to end; waits for it."""
        return self._between()

    def _between(self):
        self._wait(self._end)
        ms = ctypes.c_float()
        self._elapsed(ctypes.byref(ms), self._begin, self._end)
        return ms.value * 1e3

    def copy(self, to, source):
        """Copies on the default stream."""
        plain = (_is_contiguous(source) and _is_contiguous(to) and source.dtype == to.dtype
                 and not source.is_conj() and not source.is_neg())
        if plain and source.is_cuda and to.is_cuda:
            self._copy_bytes(_data_ptr(to), _data_ptr(source), to.numel() * to.element_size(), None)
        else:
            with torch.no_grad():
                _copy(to, source)

    def little_work(self):
        _fill(self._little, 1)
        self._context_synchronize()

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._memory(ctypes.byref(free), ctypes.byref(total))
        return free.value


class Lead:
    """Host submission time: 1.5 times the minimum of the last three calls."""

    def __init__(self):
        self._last = []

    def microseconds(self):
        return 1.5 * min(self._last) if self._last else 0.0

    def add(self, microseconds):
        self._last = [*self._last[-2:], microseconds]


def now_us():
    return _clock() / 1e3


def _function(cuda, name, *types):
    """A driver function that raises on failure."""
    function = getattr(cuda, name)
    function.argtypes = list(types)
    function.restype = ctypes.c_int
    text = cuda.cuGetErrorString
    text.argtypes = [ctypes.c_int, ctypes.c_void_p]

    def call(*arguments):
        status = function(*arguments)
        if status != 0:
            why = ctypes.c_char_p()
            text(status, ctypes.byref(why))
            raise RuntimeError(f"CUDA error: {why.value.decode() if why.value else status}")

    return call
