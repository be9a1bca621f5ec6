// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/capture/arena.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernelpro {

namespace {

constexpr std::uint64_t kAlignment = 512;      // PyTorch's
constexpr std::uint64_t kChunk = 64ull << 20;  // mapped at once
constexpr std::uint64_t kReserveStep = 64ull << 20;

std::uint64_t up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

Result<Arena> Arena::make(const CudaDriver& cu, CUdevice device, std::uint64_t address) {
  std::size_t total = 0;
  KP_CUDA_TRY(cu.DeviceTotalMem(&total, device));
  Arena arena;
  arena.cu_ = &cu;
  arena.device_ = device;
  arena.reserved_ = up(total, kReserveStep);
  KP_ASSIGN(arena.range_, AddressRange::reserve(cu, address, arena.reserved_));
  return arena;
}

bool Arena::map_more(std::uint64_t bytes) {
  if (cu_ == nullptr || bytes > reserved_ - mapped_) return false;
  for (const std::uint64_t size : {std::max(up(bytes, kChunk), kChunk), up(bytes, 2ull << 20)}) {
    if (size > reserved_ - mapped_) continue;
    Result<PhysicalMemory> memory = PhysicalMemory::create(*cu_, device_, size);
    if (!memory) continue;
    if (!range_.map(device_, range_.base() + mapped_, size, memory->handle())) return false;
    memory_.push_back(std::move(*memory));
    mapped_ += size;
    return true;
  }
  return false;
}

std::uint64_t Arena::allocate(std::uint64_t bytes, CUstream stream) {
  const std::uint64_t need = up(std::max<std::uint64_t>(bytes, 1), kAlignment);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    Block& hole = it->second;
    if (hole.stream != stream || hole.bytes < need) continue;
    const std::uint64_t address = hole.address, left = hole.bytes - need;
    free_.erase(it);
    if (left > 0) free_[address + need] = {address + need, left, stream, false};
    blocks_[address] = {address, need, stream, false};
    return address;
  }
  if (used_ + need > mapped_ && !map_more(used_ + need - mapped_)) return 0;
  const std::uint64_t address = range_.base() + used_;
  used_ += need;
  blocks_[address] = {address, need, stream, false};
  return address;
}

void Arena::free(std::uint64_t address) {
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return;
  Block block = it->second;
  blocks_.erase(it);
  if (block.shared) return;
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == address + block.bytes &&
      next->second.stream == block.stream) {
    block.bytes += next->second.bytes;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    Block& before = std::prev(next)->second;
    if (before.address + before.bytes == address && before.stream == block.stream) {
      before.bytes += block.bytes;
      return;
    }
  }
  free_[address] = block;
}

void Arena::share(std::uint64_t address) {
  if (const auto it = blocks_.find(address); it != blocks_.end()) it->second.shared = true;
}

const Arena::Block* Arena::find(std::uint64_t address) const {
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return nullptr;
  const Block& block = std::prev(it)->second;
  return address - block.address < block.bytes ? &block : nullptr;
}

}  // namespace kernelpro

#endif
