// SPDX-License-Identifier: Apache-2.0
// Virtual memory as the launch plan needs it: address ranges reserved at agreed places, and
// physical memory that can be shared between processes and swapped behind the addresses. One
// thread, with a current context.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cstdint>
#include <vector>

#include "base/files.h"
#include "core/plan/launch_plan.h"
#include "machine/driver/cuda_driver.h"

namespace kernelpro {

// Least base addresses of candidates' buffers (`placed`) and of references'.
inline constexpr std::uint64_t kCandidateBase = 0x200000000000ull;
inline constexpr std::uint64_t kReferenceBase = 0x400000000000ull;

Result<std::uint64_t> allocation_granularity(const CudaDriver& cu, CUdevice device);

// A reserved address range and its mappings; the destructor undoes everything.
class AddressRange {
 public:
  // `base` 0: anywhere. Reserves more than `bytes` where the driver grants no less at `base`; fails
  // if it grants nothing there.
  static Result<AddressRange> reserve(const CudaDriver& cu, std::uint64_t base,
                                      std::uint64_t bytes);
  AddressRange() = default;
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;
  ~AddressRange();

  std::uint64_t base() const { return base_; }
  // Maps physical memory read-write at `address`.
  Result<void> map(CUdevice device, std::uint64_t address, std::uint64_t bytes,
                   CUmemGenericAllocationHandle memory);
  // The same, so that kernels fault when they write there. False: this driver maps nothing
  // read-only, so it is mapped read-write.
  Result<bool> map_read_only(CUdevice device, std::uint64_t address, std::uint64_t bytes,
                             CUmemGenericAllocationHandle memory);
  // Undoes the mapping that starts at `address`, if there is one.
  void unmap(std::uint64_t address);
  void unmap_all();

 private:
  struct Mapping {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  CUresult set_access(CUdevice device, const Mapping& mapping, CUmemAccess_flags flags);
  const CudaDriver* cu_ = nullptr;
  std::uint64_t base_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<Mapping> mappings_;
};

// Physical memory that other processes can map once they have its descriptor.
class PhysicalMemory {
 public:
  static Result<PhysicalMemory> create(const CudaDriver& cu, CUdevice device, std::uint64_t bytes);
  static Result<PhysicalMemory> import(const CudaDriver& cu, int fd, std::uint64_t bytes);
  PhysicalMemory() = default;
  PhysicalMemory(PhysicalMemory&& other) noexcept;
  PhysicalMemory& operator=(PhysicalMemory&& other) noexcept;
  ~PhysicalMemory();

  CUmemGenericAllocationHandle handle() const { return handle_; }
  std::uint64_t bytes() const { return bytes_; }
  Result<Fd> share() const;

 private:
  const CudaDriver* cu_ = nullptr;
  CUmemGenericAllocationHandle handle_ = 0;
  std::uint64_t bytes_ = 0;
};

// One piece of memory at a given address, which grows when asked to. Growing and moving discard
// contents.
class FixedMemory {
 public:
  // Covers `bytes` from `address` on.
  Result<void> cover(const CudaDriver& cu, CUdevice device, std::uint64_t address,
                     std::uint64_t bytes);
  std::uint64_t bytes() const { return memory_.bytes(); }

 private:
  PhysicalMemory memory_;
  AddressRange range_;  // unmapped before the memory is released
};

// Memory without tensor data behind every slot of a layout: the runtime refuses to capture copies
// and memsets of unmapped addresses. Large slots map the same few chunks repeatedly.
class ScratchMapping {
 public:
  static Result<ScratchMapping> make(const CudaDriver& cu, CUdevice device,
                                     const AddressLayout& layout);

 private:
  std::vector<PhysicalMemory> chunks_;  // by size, largest first
  AddressRange range_;                  // unmapped before the chunks are released
};

}  // namespace kernelpro

#endif
