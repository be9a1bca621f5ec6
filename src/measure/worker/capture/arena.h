// SPDX-License-Identifier: Apache-2.0
// Device memory for a program whose calls are captured, from a fixed address on: the same requests
// in the same order get the same offsets. One thread at a time, current context.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cstdint>
#include <map>
#include <vector>

#include "machine/driver/cuda_driver.h"
#include "measure/worker/cuda/memory.h"

namespace kernelpro {

class Arena {
 public:
  struct Block {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    CUstream stream = nullptr;  // that it was allocated on
    bool shared = false;        // other streams use it too
  };

  // Reserves as many addresses as the GPU has memory; maps memory as it is needed.
  static Result<Arena> make(const CudaDriver& cu, CUdevice device, std::uint64_t address);
  Arena() = default;

  // 0 when no memory is left. A freed block is only used again on its stream, in whose order that
  // is safe, and never if other streams used it.
  std::uint64_t allocate(std::uint64_t bytes, CUstream stream);
  void free(std::uint64_t address);
  void share(std::uint64_t address);  // with another stream
  // The block in use that holds this address, or null.
  const Block* find(std::uint64_t address) const;
  // Whether the address has ever been in a block.
  bool contains(std::uint64_t address) const { return address - base() < used_; }
  std::uint64_t base() const { return range_.base(); }
  std::uint64_t used() const { return used_; }  // bytes from the base on, at most

 private:
  bool map_more(std::uint64_t bytes);

  const CudaDriver* cu_ = nullptr;
  CUdevice device_ = 0;
  std::uint64_t reserved_ = 0, mapped_ = 0, used_ = 0;
  std::vector<PhysicalMemory> memory_;
  AddressRange range_;                     // unmapped before the memory is released
  std::map<std::uint64_t, Block> blocks_;  // in use, by address
  std::map<std::uint64_t, Block> free_;    // by address
};

}  // namespace kernelpro

#endif
