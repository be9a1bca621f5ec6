// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/occupancy.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace kernelpro {

namespace {

constexpr int kWarp = 32;
constexpr int kPartitions = 4;             // per multiprocessor, each with its own registers
constexpr int kRegisterGranularity = 256;  // registers, per warp
constexpr int kMostRegisters = 255;        // addressable per thread
constexpr int kMostThreads = 1024;         // per block
constexpr int kKiB = 1024;
constexpr int kWithoutOptIn = 48 * kKiB;

// The existing carve-outs in KiB; a GPU's largest one is its `shared_bytes`.
constexpr int kCarveouts[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

int round_up(int value, int step) { return (value + step - 1) / step * step; }

// The multiprocessor's shared memory under the kernel's preferred carve-out.
int carveout_bytes(const SmLimits& sm, int percent, int block_bytes) {
  if (percent < 0 || percent > 100) return sm.shared_bytes;
  const int wanted =
      std::max({sm.shared_bytes * percent / 100, block_bytes, sm.shared_least_bytes});
  for (const int kib : kCarveouts) {
    if (kib * kKiB >= wanted) return std::min(kib * kKiB, sm.shared_bytes);
  }
  return sm.shared_bytes;
}

int by_registers(const SmLimits& sm, int warps, int registers) {
  if (registers <= 0) return Occupancy::kUnlimited;
  const int per_warp = round_up(registers * kWarp, kRegisterGranularity);
  // The launch check assumes warps spread over all partitions.
  if (registers > kMostRegisters || per_warp * round_up(warps, kPartitions) > sm.registers)
    return 0;
  return sm.registers / kPartitions / per_warp * kPartitions / warps;
}

int shared_allocated(const SmLimits& sm, int bytes) {
  return round_up(bytes + sm.shared_reserved_bytes, sm.shared_granularity);
}

int by_shared(const SmLimits& sm, const BlockNeeds& needs, int bytes) {
  const int allocated = shared_allocated(sm, bytes);
  if (bytes > sm.shared_block_bytes) return 0;
  if (allocated == 0) return Occupancy::kUnlimited;
  return carveout_bytes(sm, needs.shared_carveout, allocated) / allocated;
}

}  // namespace

Occupancy occupancy(const SmLimits& sm, const BlockNeeds& needs) {
  KP_ASSERT(needs.threads > 0);
  Occupancy o;
  const int warps = (needs.threads + kWarp - 1) / kWarp;
  o.by_warps = needs.threads > kMostThreads ? 0 : sm.warps / warps;
  o.by_blocks = sm.blocks;
  o.by_registers = by_registers(sm, warps, needs.registers);
  o.by_shared = by_shared(sm, needs, needs.shared_bytes);
  if (needs.barriers > 0 && sm.barriers > 0) o.by_barriers = sm.barriers / needs.barriers;

  o.blocks = std::min({o.by_registers, o.by_shared, o.by_warps, o.by_blocks, o.by_barriers});
  o.warps = o.blocks * warps;
  o.fraction = static_cast<double>(o.warps) / sm.warps;
  for (int registers = needs.registers - 1; registers > 0; --registers) {
    if (by_registers(sm, warps, registers) <= o.blocks) continue;
    o.registers_for_more = registers;
    break;
  }
  // The most that still fits one more block.
  const int most =
      sm.shared_bytes / (o.blocks + 1) / sm.shared_granularity * sm.shared_granularity -
      sm.shared_reserved_bytes;
  o.shared_bytes_for_more = std::clamp(most, 0, needs.shared_bytes);
  return o;
}

}  // namespace kernelpro
