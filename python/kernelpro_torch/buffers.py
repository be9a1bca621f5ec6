# SPDX-License-Identifier: Apache-2.0
"""Tensors over memory owned by the judge.

On the GPU the judge shares physical memory (cuMemCreate) as POSIX descriptors; this module maps it
with driver calls into torch's context. On the CPU the descriptors are shared memory. A `Mapping`
must outlive the tensors returned by `tensor`; call `close` once nothing uses them any more.
"""

import ctypes
import mmap

import torch

# core/task/dtype.h's names.
DTYPES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
    "fp64": torch.float64,  # expected results only
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int32": 4, "int64": 8, "bool": 1, "fp64": 8}

# __cuda_array_interface__ has no bfloat16 and torch reads no bools through it: pass those as
# integers of the same size and view them.
_CARRIERS = {"fp32": "<f4", "fp16": "<f2", "bf16": "<i2", "int32": "<i4", "int64": "<i8",
             "bool": "|u1", "fp64": "<f8"}


def map_memory(fd, size, device):
    """Maps a descriptor's `size` bytes. `device`: "cuda" or "cpu". The caller owns the descriptor
    and may close it afterwards."""
    return CudaMapping(fd, size) if str(device).startswith("cuda") else CpuMapping(fd, size)


class CpuMapping:
    def __init__(self, fd, size):
        self.bytes = size
        self._memory = mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)

    def tensor(self, offset, dtype, shape):
        """A contiguous tensor over the memory starting at byte `offset`; `dtype` is a name."""
        count = _count(shape)
        _check(offset, count, dtype, self.bytes)
        flat = torch.frombuffer(self._memory, dtype=DTYPES[dtype], count=count, offset=offset)
        return flat.view(tuple(shape))

    def close(self):
        memory, self._memory = self._memory, None
        if memory is not None:
            try:
                memory.close()
            except BufferError:
                pass  # tensors are alive; the last one frees the memory


class CudaMapping:
    def __init__(self, fd, size):
        self.bytes = size
        self._address = 0
        self._mapped = False
        cuda = driver()
        handle = ctypes.c_ulonglong()
        _call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fd),
              ctypes.c_int(1))  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        try:
            address = ctypes.c_ulonglong()
            _call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size),
                  ctypes.c_size_t(0), ctypes.c_ulonglong(0), ctypes.c_ulonglong(0))
            self._address = address.value
            _call("cuMemMap", address, ctypes.c_size_t(size), ctypes.c_size_t(0), handle,
                  ctypes.c_ulonglong(0))
            self._mapped = True
            access = _Access(_Location(1, torch.cuda.current_device()), 3)  # device, read and write
            _call("cuMemSetAccess", address, ctypes.c_size_t(size), ctypes.byref(access),
                  ctypes.c_size_t(1))
        except DriverError:
            self.close()
            raise
        finally:
            cuda.cuMemRelease(handle)  # the mapping keeps the memory alive

    def tensor(self, offset, dtype, shape):
        """A contiguous tensor over the memory starting at byte `offset`; `dtype` is a name."""
        count = _count(shape)
        _check(offset, count, dtype, self.bytes)
        return tensor_at(self._address + offset, dtype, shape)

    def close(self):
        address, self._address = ctypes.c_ulonglong(self._address), 0
        if not address.value:
            return
        torch.cuda.synchronize()
        if self._mapped:
            driver().cuMemUnmap(address, ctypes.c_size_t(self.bytes))
        driver().cuMemAddressFree(address, ctypes.c_size_t(self.bytes))


def tensor_at(address, dtype, shape):
    """A contiguous tensor over device memory; `dtype` is a name."""
    count = _count(shape)
    if count == 0:
        return torch.empty(tuple(shape), dtype=DTYPES[dtype], device="cuda")
    flat = torch.as_tensor(_Interface(address, count, _CARRIERS[dtype]), device="cuda")
    if flat.dtype != DTYPES[dtype]:
        flat = flat.view(DTYPES[dtype])
    return flat.view(tuple(shape))


class DriverError(RuntimeError):
    """A failed driver call, and why."""


_driver = None


def driver():
    """libcuda through ctypes, with torch's context current on this thread."""
    global _driver
    if _driver is None:
        torch.empty(1, device="cuda")  # creates the primary context and makes it current
        _driver = ctypes.CDLL("libcuda.so.1")
    return _driver


def _call(name, *arguments):
    status = getattr(driver(), name)(*arguments)
    if status != 0:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(status, ctypes.byref(text))
        why = text.value.decode() if text.value else "unknown error"
        raise DriverError(f"{name} failed: {why} ({status})")


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class _Interface:
    def __init__(self, address, count, carrier):
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": carrier,
            "data": (address, False),
            "version": 2,
            "strides": None,
        }


def _count(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def _check(offset, count, dtype, size):
    if dtype not in DTYPES:
        raise ValueError(f"unknown dtype {dtype!r}")
    if offset < 0 or offset + count * DTYPE_BYTES[dtype] > size:
        raise ValueError("a tensor reaches beyond its buffer")
