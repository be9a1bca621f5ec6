# SPDX-License-Identifier: Apache-2.0
"""Clocks, flushes and copies on a device, for code that shares a process with a candidate.

Everything used while a candidate runs is looked up here before the candidate is imported: driver
functions through ctypes, and methods taken from their classes. A candidate's later patches to torch
or time do not affect it.
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
_view = torch.Tensor.view
_equal = torch.equal
_fill = torch.Tensor.fill_

FLUSH_AT_LEAST = 256 << 20  # and at least four times L2
_CHUNK = 64 << 20  # elements compared at once
_MOST_FLUSHES = 60  # about 4 ms on an H200


def make(name):
    """`name`: "cuda" or "cpu"."""
    return Cuda() if name == "cuda" else Cpu()


class Cpu:
    name = "cpu"

    def __init__(self):
        self.device = torch.device("cpu")
        self._flush = torch.ones(16 << 20, dtype=torch.int32)

    def synchronize(self):
        pass

    def release(self):
        """Releases unused memory."""

    def busy(self, microseconds):
        """Keeps the device busy at least this long; a no-op where calls are synchronous."""

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

    def settle(self):
        """Waits for the stream; returns how many microseconds other work ran after that."""
        time.sleep(0.001)  # late writes by a thread show up in the outputs
        return 0.0

    def copy(self, to, source):
        _copy(to, source)

    def scribble(self, tensor, key):
        """Fills a tensor's memory with a pattern that matches no result."""
        if _is_contiguous(tensor) and tensor.numel() > 0 and tensor.dtype != torch.bool:
            _fill(_view(_view(tensor, -1), torch.uint8), 0xC0 | (key & 0x3F))

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
        self._empty_cache = torch.cuda.empty_cache
        handle = ctypes.c_void_p
        self._record = _function(cuda, "cuEventRecord", handle, handle)
        self._wait = _function(cuda, "cuEventSynchronize", handle)
        self._elapsed = _function(cuda, "cuEventElapsedTime", handle, handle, handle)
        self._stream_synchronize = _function(cuda, "cuStreamSynchronize", handle)
        self._context_synchronize = _function(cuda, "cuCtxSynchronize")
        self._copy_bytes = _function(cuda, "cuMemcpyDtoDAsync_v2", ctypes.c_ulonglong,
                                     ctypes.c_ulonglong, ctypes.c_size_t, handle)
        self._set_words = _function(cuda, "cuMemsetD32Async", ctypes.c_ulonglong, ctypes.c_uint,
                                    ctypes.c_size_t, handle)
        self._set_bytes = _function(cuda, "cuMemsetD8Async", ctypes.c_ulonglong, ctypes.c_ubyte,
                                    ctypes.c_size_t, handle)
        self._memory = _function(cuda, "cuMemGetInfo_v2", handle, handle)
        create = _function(cuda, "cuEventCreate", handle, ctypes.c_uint)
        self._begin, self._end = handle(), handle()
        create(ctypes.byref(self._begin), 0)
        create(ctypes.byref(self._end), 0)
        l2 = getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", 64 << 20)
        words = max(FLUSH_AT_LEAST, 4 * l2) // 8
        self._flush = torch.ones(words, dtype=torch.int64, device=self.device)
        self._flush_us = 50.0
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
        self._set_words(_data_ptr(self._flush), (key & 0x3fffffff) | 1, self._flush.numel() * 2,
                        None)

    def flush(self):
        """Reads a buffer larger than L2 (writing would leave dirty lines behind)."""
        _sum(self._flush)

    def release(self):
        """Releases unused memory: the judge has little to spare for large tasks."""
        self._empty_cache()

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

    def settle(self):
        """Waits for the stream; returns how many microseconds other work ran after that."""
        self._stream_synchronize(None)
        begin = _clock()
        self._context_synchronize()
        return (_clock() - begin) / 1e3

    def copy(self, to, source):
        """Copies on the default stream; `to` is contiguous."""
        plain = _is_contiguous(source) and not source.is_conj() and not source.is_neg()
        if plain and source.dtype == to.dtype:
            self._copy_bytes(_data_ptr(to), _data_ptr(source), to.numel() * to.element_size(), None)
        else:
            _copy(to, source)

    def scribble(self, tensor, key):
        size = tensor.numel() * tensor.element_size()
        if _is_contiguous(tensor) and size > 0:
            self._set_bytes(_data_ptr(tensor), 0xc0 | (key & 0x3f), size, None)

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._memory(ctypes.byref(free), ctypes.byref(total))
        return free.value


def same_bits(a, b):
    """Whether two contiguous tensors of one type hold the same bits. Needs little memory."""
    size = a.numel() * a.element_size()
    whole = torch.int64 if size % 8 == 0 and not (a.data_ptr() | b.data_ptr()) % 8 else torch.uint8
    a, b = _view(_view(a, -1), whole), _view(_view(b, -1), whole)
    return all(bool(_equal(a[i:i + _CHUNK], b[i:i + _CHUNK])) for i in range(0, len(a), _CHUNK))


def sample(tensor):
    """A copy of up to about a million elements, evenly spread."""
    flat = tensor.detach().reshape(-1) if not _is_contiguous(tensor) else _view(tensor.detach(), -1)
    return flat[::max(1, flat.numel() >> 20)].clone()


def far_apart(a, b):
    """Whether two results of one computation differ by more than rounding can explain."""
    if not a.dtype.is_floating_point:
        return not bool(_equal(a, b))
    a, b = a.float(), b.float()
    if bool((torch.isfinite(a) != torch.isfinite(b)).any()):
        return True
    a, b = torch.nan_to_num(a, 0.0, 0.0, 0.0), torch.nan_to_num(b, 0.0, 0.0, 0.0)
    return a.numel() > 0 and float((a - b).abs().max()) > 0.1 * float(b.abs().max())


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
