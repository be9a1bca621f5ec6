// SPDX-License-Identifier: Apache-2.0
// The fake driver's memory. An address range is reserved from this process, physical memory is a
// file in memory, and a mapping maps that file, so that another process may map it too.
#if KERNELPRO_HAVE_CUDA

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "measure/worker/testing/fake_state.h"

namespace kernelpro::fake {

namespace {

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// The entry of `map` (by start, `bytes_of`) that holds this address, or the end.
template <class Map, class Bytes>
auto holding(Map& map, std::uint64_t address, Bytes bytes_of) {
  auto next = map.upper_bound(address);
  if (next == map.begin()) return map.end();
  --next;
  return address < next->first + bytes_of(next->second) ? next : map.end();
}

constexpr auto kMappingBytes = [](const Mapping& m) { return m.bytes; };
constexpr auto kPlainBytes = [](std::uint64_t bytes) { return bytes; };

std::uint64_t extent(std::uint64_t pitch, std::uint64_t rows, std::uint64_t width) {
  return rows == 0 || width == 0 ? 0 : (rows - 1) * pitch + width;
}

std::uint64_t add_physical(int fd, std::uint64_t bytes) {
  State& s = state();
  s.physical[s.next_handle] = {fd, bytes};
  return s.next_handle++;
}

bool overlaps(const std::map<std::uint64_t, Mapping>& mappings, std::uint64_t address,
              std::uint64_t bytes) {
  return std::any_of(mappings.begin(), mappings.end(), [&](const auto& item) {
    return item.first < address + bytes && address < item.first + item.second.bytes;
  });
}

}  // namespace

bool State::is_mapped(std::uint64_t address, std::uint64_t bytes) const {
  while (bytes > 0) {
    std::uint64_t end = 0;
    if (const auto mapping = holding(mappings, address, kMappingBytes); mapping != mappings.end()) {
      if (!mapping->second.accessible) return false;
      end = mapping->first + mapping->second.bytes;
    } else if (const auto plain = holding(allocations, address, kPlainBytes);
               plain != allocations.end()) {
      end = plain->first + plain->second;
    } else {
      return false;
    }
    const std::uint64_t here = std::min(bytes, end - address);
    address += here;
    bytes -= here;
  }
  return true;
}

void refuse_read_only() { state().no_read_only = true; }

void release_memory() {
  for (const auto& [address, bytes] : state().ranges) ::munmap(pointer(address), bytes);
  for (const auto& [address, bytes] : state().allocations) ::munmap(pointer(address), bytes);
  for (const auto& [handle, memory] : state().physical) ::close(memory.fd);
}

bool fits(const CUDA_MEMCPY3D& copy) {
  const std::uint64_t rows = copy.Height, planes = copy.Depth;
  const auto whole = [&](std::uint64_t pitch, std::uint64_t height) {
    const std::uint64_t stride = pitch == 0 ? copy.WidthInBytes : pitch;
    return extent(stride * (height == 0 ? rows : height), planes,
                  extent(stride, rows, copy.WidthInBytes));
  };
  return state().is_mapped(copy.srcDevice, whole(copy.srcPitch, copy.srcHeight)) &&
         state().is_mapped(copy.dstDevice, whole(copy.dstPitch, copy.dstHeight));
}

bool fits(const CUDA_MEMSET_NODE_PARAMS& set) {
  return state().is_mapped(set.dst, extent(set.pitch, set.height, set.width * set.elementSize));
}

CUresult State::copy(const CUDA_MEMCPY3D& c) {
  if (!fits(c)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t from_pitch = c.srcPitch == 0 ? c.WidthInBytes : c.srcPitch;
  const std::uint64_t to_pitch = c.dstPitch == 0 ? c.WidthInBytes : c.dstPitch;
  const std::uint64_t from_height = c.srcHeight == 0 ? c.Height : c.srcHeight;
  const std::uint64_t to_height = c.dstHeight == 0 ? c.Height : c.dstHeight;
  for (std::uint64_t z = 0; z < c.Depth; ++z) {
    for (std::uint64_t y = 0; y < c.Height; ++y) {
      std::memcpy(pointer(c.dstDevice + (z * to_height + y) * to_pitch),
                  pointer(c.srcDevice + (z * from_height + y) * from_pitch), c.WidthInBytes);
    }
  }
  now_us += 1;
  log.emplace_back("copy");
  return CUDA_SUCCESS;
}

CUresult State::set(const CUDA_MEMSET_NODE_PARAMS& m) {
  if (!fits(m)) return CUDA_ERROR_INVALID_VALUE;
  for (std::uint64_t y = 0; y < m.height; ++y) {
    for (std::uint64_t x = 0; x < m.width; ++x) {
      std::memcpy(pointer(m.dst + y * m.pitch + x * m.elementSize), &m.value, m.elementSize);
    }
  }
  now_us += 1;
  log.emplace_back("set");
  return CUDA_SUCCESS;
}

}  // namespace kernelpro::fake

using namespace kernelpro::fake;

KP_FAKE(MemGetAllocationGranularity, std::size_t* bytes, const CUmemAllocationProp*,
        CUmemAllocationGranularity_flags) {
  KP_FAKE_ENTER(MemGetAllocationGranularity);
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}
KP_FAKE(MemGetInfo, std::size_t* free_bytes, std::size_t* total) {
  KP_FAKE_ENTER(MemGetInfo);
  *total = state().total_bytes;
  *free_bytes = state().total_bytes - std::min(state().used_bytes, state().total_bytes);
  return CUDA_SUCCESS;
}

KP_FAKE(MemAddressReserve, CUdeviceptr* granted, std::size_t bytes, std::size_t, CUdeviceptr wanted,
        unsigned long long) {
  KP_FAKE_ENTER(MemAddressReserve);
  if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes < state().misplaced_below) wanted = 0;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = MAP_FAILED;
  if (wanted != 0) {
    at = ::mmap(pointer(wanted), bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (at == MAP_FAILED) {  // elsewhere, aligned
    at = ::mmap(nullptr, bytes + kGranularity, PROT_NONE, kFlags, -1, 0);
    if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto start = reinterpret_cast<std::uint64_t>(at);
    const std::uint64_t first = (start + kGranularity - 1) / kGranularity * kGranularity;
    if (first > start) ::munmap(at, first - start);
    if (first < start + kGranularity)
      ::munmap(pointer(first + bytes), start + kGranularity - first);
    at = pointer(first);
  }
  *granted = reinterpret_cast<CUdeviceptr>(at);
  state().ranges[*granted] = bytes;
  return CUDA_SUCCESS;
}
KP_FAKE(MemAddressFree, CUdeviceptr address, std::size_t bytes) {
  state().leave("MemAddressFree");
  const auto range = state().ranges.find(address);
  if (range == state().ranges.end() || range->second != bytes) {
    state().complain("an unknown address range is freed");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (overlaps(state().mappings, address, bytes)) state().complain("a mapped range is freed");
  ::munmap(pointer(address), bytes);
  state().ranges.erase(range);
  return state().broken;
}

KP_FAKE(MemCreate, CUmemGenericAllocationHandle* handle, std::size_t bytes,
        const CUmemAllocationProp*, unsigned long long) {
  KP_FAKE_ENTER(MemCreate);
  if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (state().used_bytes + bytes > state().total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const int fd = ::memfd_create("fake device memory", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  state().used_bytes += bytes;
  *handle = add_physical(fd, bytes);
  return CUDA_SUCCESS;
}
KP_FAKE(MemImportFromShareableHandle, CUmemGenericAllocationHandle* handle, void* shared,
        CUmemAllocationHandleType) {
  KP_FAKE_ENTER(MemImportFromShareableHandle);
  const int fd =
      ::fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(shared)), F_DUPFD_CLOEXEC, 0);
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0) return CUDA_ERROR_INVALID_VALUE;
  // Does not count as used: its maker's does.
  *handle = add_physical(fd, 0);
  return CUDA_SUCCESS;
}
KP_FAKE(MemExportToShareableHandle, void* shared, CUmemGenericAllocationHandle handle,
        CUmemAllocationHandleType, unsigned long long) {
  KP_FAKE_ENTER(MemExportToShareableHandle);
  const auto memory = state().physical.find(handle);
  if (memory == state().physical.end()) return CUDA_ERROR_INVALID_VALUE;
  const int fd = ::fcntl(memory->second.fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shared) = fd;
  return CUDA_SUCCESS;
}
KP_FAKE(MemRelease, CUmemGenericAllocationHandle handle) {
  state().leave("MemRelease");
  const auto memory = state().physical.find(handle);
  if (memory == state().physical.end()) {
    state().complain("unknown memory is released");
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::close(memory->second.fd);
  state().used_bytes -= memory->second.bytes;
  state().physical.erase(memory);
  return state().broken;
}

KP_FAKE(MemMap, CUdeviceptr address, std::size_t bytes, std::size_t offset,
        CUmemGenericAllocationHandle handle, unsigned long long) {
  KP_FAKE_ENTER(MemMap);
  const auto memory = state().physical.find(handle);
  const auto range = holding(state().ranges, address, kPlainBytes);
  struct stat about {};
  if (memory == state().physical.end() || range == state().ranges.end() ||
      address + bytes > range->first + range->second || bytes % kGranularity != 0 ||
      ::fstat(memory->second.fd, &about) != 0 ||
      offset + bytes > static_cast<std::uint64_t>(about.st_size) ||
      overlaps(state().mappings, address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (::mmap(pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->second.fd,
             static_cast<off_t>(offset)) == MAP_FAILED) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  state().mappings[address] = {bytes, false};
  return CUDA_SUCCESS;
}
KP_FAKE(MemSetAccess, CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
        std::size_t) {
  KP_FAKE_ENTER(MemSetAccess);
  const auto mapping = state().mappings.find(address);
  if (mapping == state().mappings.end() || mapping->second.bytes != bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool writable = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (!writable && state().no_read_only) return CUDA_ERROR_NOT_SUPPORTED;
  ::mprotect(pointer(address), bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ);
  mapping->second.accessible = true;
  return CUDA_SUCCESS;
}
KP_FAKE(MemUnmap, CUdeviceptr address, std::size_t bytes) {
  state().leave("MemUnmap");
  const auto mapping = state().mappings.find(address);
  if (mapping == state().mappings.end() || mapping->second.bytes != bytes) {
    state().complain("what is not mapped is unmapped");
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::mmap(pointer(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  state().mappings.erase(mapping);
  return state().broken;
}

KP_FAKE(MemAlloc, CUdeviceptr* address, std::size_t bytes) {
  KP_FAKE_ENTER(MemAlloc);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (state().used_bytes + bytes > state().total_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(at);
  state().allocations[*address] = bytes;
  state().used_bytes += bytes;
  return CUDA_SUCCESS;
}
KP_FAKE(MemFree, CUdeviceptr address) {
  state().leave("MemFree");
  const auto plain = state().allocations.find(address);
  if (plain == state().allocations.end()) {
    state().complain("an unknown allocation is freed");
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::munmap(pointer(address), plain->second);
  state().used_bytes -= plain->second;
  state().allocations.erase(plain);
  return state().broken;
}

KP_FAKE(MemcpyDtoH, void* to, CUdeviceptr from, std::size_t bytes) {
  KP_FAKE_ENTER(MemcpyDtoH);
  if (!state().is_mapped(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, pointer(from), bytes);
  return CUDA_SUCCESS;
}
KP_FAKE(MemcpyHtoD, CUdeviceptr to, const void* from, std::size_t bytes) {
  KP_FAKE_ENTER(MemcpyHtoD);
  if (!state().is_mapped(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(pointer(to), from, bytes);
  return CUDA_SUCCESS;
}
KP_FAKE(MemcpyDtoDAsync, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  KP_FAKE_ENTER(MemcpyDtoDAsync);
  if (!state().good_stream(stream) || !state().is_mapped(to, bytes) ||
      !state().is_mapped(from, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memmove(pointer(to), pointer(from), bytes);
  state().now_us += 1;
  return CUDA_SUCCESS;
}
KP_FAKE(Memcpy3DAsync, const CUDA_MEMCPY3D* copy, CUstream stream) {
  KP_FAKE_ENTER(Memcpy3DAsync);
  return state().good_stream(stream) ? state().copy(*copy) : CUDA_ERROR_INVALID_HANDLE;
}

namespace {
CUresult memset_now(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned bytes,
                    std::size_t width, std::size_t height, CUstream stream) {
  if (!state().good_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return state().set({to, pitch, value, bytes, width, height});
}
}  // namespace

KP_FAKE(MemsetD8Async, CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  KP_FAKE_ENTER(MemsetD8Async);
  if (!state().good_stream(stream) || !state().is_mapped(to, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memset(pointer(to), value, count);
  return CUDA_SUCCESS;
}
KP_FAKE(MemsetD2D8Async, CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
        std::size_t height, CUstream stream) {
  KP_FAKE_ENTER(MemsetD2D8Async);
  return memset_now(to, pitch, value, 1, width, height, stream);
}
KP_FAKE(MemsetD2D16Async, CUdeviceptr to, std::size_t pitch, unsigned short value,
        std::size_t width, std::size_t height, CUstream stream) {
  KP_FAKE_ENTER(MemsetD2D16Async);
  return memset_now(to, pitch, value, 2, width, height, stream);
}
KP_FAKE(MemsetD2D32Async, CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
        std::size_t height, CUstream stream) {
  KP_FAKE_ENTER(MemsetD2D32Async);
  return memset_now(to, pitch, value, 4, width, height, stream);
}

KP_FAKE(PointerGetAttribute, void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  KP_FAKE_ENTER(PointerGetAttribute);
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
      attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
    for (const auto& [start, bytes] : state().allocations) {
      if (address - start >= bytes) continue;
      const bool first = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
      *static_cast<std::uint64_t*>(data) = first ? start : bytes;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE) return CUDA_ERROR_NOT_SUPPORTED;
  const bool host = state().host_memory.count(address) != 0;
  if (!host && !state().is_mapped(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<unsigned*>(data) = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  return CUDA_SUCCESS;
}

// Not a descriptor that a GPU reads, but all that it depends on.
KP_FAKE(TensorMapEncodeTiled, CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
        void* address, const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
        const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  KP_FAKE_ENTER(TensorMapEncodeTiled);
  *map = {};
  map->opaque[0] = reinterpret_cast<std::uint64_t>(address);
  map->opaque[1] = static_cast<std::uint64_t>(type);
  map->opaque[2] = rank;
  map->opaque[3] = static_cast<std::uint64_t>(swizzle);
  for (cuuint32_t i = 0; i < rank; ++i) {
    map->opaque[4 + i] = sizes[i] << 32 | box[i];
    if (i + 1 < rank) map->opaque[10 + i] = strides[i];
  }
  return CUDA_SUCCESS;
}

#endif
