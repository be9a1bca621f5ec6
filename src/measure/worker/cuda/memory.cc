// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/memory.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cstdio>
#include <utility>

namespace kernelpro {

namespace {

CUmemAllocationProp properties(CUdevice device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop;
}

tl::unexpected<Error> misplaced(std::uint64_t base, std::uint64_t granted) {
  char text[96];
  std::snprintf(text, sizeof text, "addresses at %#llx were asked for, %#llx were granted",
                static_cast<unsigned long long>(base), static_cast<unsigned long long>(granted));
  return fail(ErrorKind::kEnvironment, text,
              "run again; if it fails again, report it with your driver version");
}

}  // namespace

Result<std::uint64_t> allocation_granularity(const CudaDriver& cu, CUdevice device) {
  const CUmemAllocationProp prop = properties(device);
  std::size_t granularity = 0;
  KP_CUDA_TRY(
      cu.MemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return granularity;
}

Result<AddressRange> AddressRange::reserve(const CudaDriver& cu, std::uint64_t base,
                                           std::uint64_t bytes) {
  // Measured: while the process has a hole in its reservations that is large enough, the driver
  // fills that instead of granting what was asked for. A larger range fits no hole.
  constexpr std::uint64_t kLargest = 256ull << 30;  // agreed bases are a terabyte apart
  for (std::uint64_t asked = bytes;; asked *= 8) {
    AddressRange range;
    CUdeviceptr granted = 0;
    KP_CUDA_TRY(cu.MemAddressReserve(&granted, asked, 0, base, 0));
    range.cu_ = &cu;
    range.base_ = granted;
    range.bytes_ = asked;
    if (base == 0 || granted == base) return range;
    if (asked > kLargest / 8) return misplaced(base, granted);
  }
}

AddressRange::AddressRange(AddressRange&& other) noexcept { *this = std::move(other); }

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  std::swap(cu_, other.cu_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(mappings_, other.mappings_);
  return *this;
}

AddressRange::~AddressRange() {
  if (cu_ == nullptr) return;
  unmap_all();
  cu_->MemAddressFree(base_, bytes_);
}

Result<void> AddressRange::map(CUdevice device, std::uint64_t address, std::uint64_t bytes,
                               CUmemGenericAllocationHandle memory) {
  KP_CUDA_TRY(cu_->MemMap(address, bytes, 0, memory, 0));
  mappings_.push_back({address, bytes});
  const auto open_up = [&]() -> Result<void> {
    KP_CUDA_TRY(set_access(device, mappings_.back(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    return {};
  };
  Result<void> accessible = open_up();
  if (!accessible) unmap(address);  // so that it can be mapped again
  return accessible;
}

Result<bool> AddressRange::map_read_only(CUdevice device, std::uint64_t address,
                                         std::uint64_t bytes, CUmemGenericAllocationHandle memory) {
  KP_CUDA_TRY(cu_->MemMap(address, bytes, 0, memory, 0));
  const Mapping mapping{address, bytes};
  const CUresult read_only_access = set_access(device, mapping, CU_MEM_ACCESS_FLAGS_PROT_READ);
  if (read_only_access == CUDA_SUCCESS) {
    mappings_.push_back(mapping);
    return true;
  }
  // Anew: what a refusal leaves is not documented.
  cu_->MemUnmap(address, bytes);
  const bool refused =
      read_only_access != CUDA_ERROR_OUT_OF_MEMORY && !breaks_context(read_only_access);
  if (!refused) KP_CUDA_TRY(read_only_access);
  KP_TRY(map(device, address, bytes, memory));
  return false;
}

CUresult AddressRange::set_access(CUdevice device, const Mapping& mapping,
                                  CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = flags;
  return cu_->MemSetAccess(mapping.address, mapping.bytes, &access, 1);
}

void AddressRange::unmap(std::uint64_t address) {
  const auto found = std::find_if(mappings_.begin(), mappings_.end(),
                                  [&](const Mapping& m) { return m.address == address; });
  if (found == mappings_.end()) return;
  cu_->MemUnmap(found->address, found->bytes);
  mappings_.erase(found);
}

void AddressRange::unmap_all() {
  for (const Mapping& m : mappings_) cu_->MemUnmap(m.address, m.bytes);
  mappings_.clear();
}

Result<PhysicalMemory> PhysicalMemory::create(const CudaDriver& cu, CUdevice device,
                                              std::uint64_t bytes) {
  PhysicalMemory memory;
  const CUmemAllocationProp prop = properties(device);
  KP_CUDA_TRY(cu.MemCreate(&memory.handle_, bytes, &prop, 0));
  memory.cu_ = &cu;
  memory.bytes_ = bytes;
  return memory;
}

Result<PhysicalMemory> PhysicalMemory::import(const CudaDriver& cu, int fd, std::uint64_t bytes) {
  PhysicalMemory memory;
  void* handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
  KP_CUDA_TRY(cu.MemImportFromShareableHandle(&memory.handle_, handle,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  memory.cu_ = &cu;
  memory.bytes_ = bytes;
  return memory;
}

PhysicalMemory::PhysicalMemory(PhysicalMemory&& other) noexcept { *this = std::move(other); }

PhysicalMemory& PhysicalMemory::operator=(PhysicalMemory&& other) noexcept {
  std::swap(cu_, other.cu_);
  std::swap(handle_, other.handle_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PhysicalMemory::~PhysicalMemory() {
  if (cu_ != nullptr) cu_->MemRelease(handle_);
}

Result<Fd> PhysicalMemory::share() const {
  int fd = -1;
  KP_CUDA_TRY(
      cu_->MemExportToShareableHandle(&fd, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return Fd(fd);
}

Result<void> FixedMemory::cover(const CudaDriver& cu, CUdevice device, std::uint64_t address,
                                std::uint64_t bytes) {
  if (bytes == 0 || (bytes <= memory_.bytes() && range_.base() == address)) return {};
  constexpr std::uint64_t kStep = 64ull << 20;  // smaller ranges are placed elsewhere (make_layout)
  const std::uint64_t all = (bytes + kStep - 1) / kStep * kStep;
  range_ = AddressRange();
  memory_ = PhysicalMemory();
  KP_ASSIGN(PhysicalMemory memory, PhysicalMemory::create(cu, device, all));
  memory_ = std::move(memory);
  KP_ASSIGN(range_, AddressRange::reserve(cu, address, all));
  return range_.map(device, address, all, memory_.handle());
}

Result<ScratchMapping> ScratchMapping::make(const CudaDriver& cu, CUdevice device,
                                            const AddressLayout& layout) {
  ScratchMapping mapping;
  KP_ASSIGN(mapping.range_, AddressRange::reserve(cu, layout.base, layout.reserve_bytes));
  KP_ASSIGN(const std::uint64_t granularity, allocation_granularity(cu, device));
  constexpr int kSizes = 6;  // granularity * 32, 16, ... 1
  for (int k = kSizes - 1; k >= 0; --k) {
    KP_ASSIGN(PhysicalMemory chunk, PhysicalMemory::create(cu, device, granularity << k));
    mapping.chunks_.push_back(std::move(chunk));
  }
  for (const AddressLayout::Slot& slot : layout.slots) {
    std::uint64_t at = slot.mapping, left = slot.mapping_bytes;
    for (const PhysicalMemory& chunk : mapping.chunks_) {
      for (; left >= chunk.bytes(); left -= chunk.bytes(), at += chunk.bytes()) {
        KP_TRY(mapping.range_.map(device, at, chunk.bytes(), chunk.handle()));
      }
    }
  }
  return mapping;
}

}  // namespace kernelpro

#endif
