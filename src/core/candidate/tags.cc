// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/tags.h"

namespace kernelpro {

namespace {
constexpr Tag kTags[] = {
    {"vectorize", "elements that one load, store or arithmetic instruction handles"},
    {"threads", "processor threads that share the work"},
    {"block-size", "GPU threads in a block"},
    {"grid-size", "GPU blocks, or work per block"},
    {"tile-size", "elements of the tile that a thread, block or loop nest works on"},
    {"unroll", "independent operations in flight in the innermost loop"},
    {"passes", "how often the input is read from memory"},
    {"streaming", "stores or loads that bypass the cache"},
    {"packing", "operands copied to contiguous buffers first"},
    {"registers", "registers per thread, launch bounds"},
    {"pipeline", "stages of asynchronous copies in flight"},
    {"shared-memory", "reuse through on-chip shared memory"},
    {"tensor-cores", "matrix instructions instead of scalar multiply-adds"},
    {"layout", "which data lie side by side in memory, and which thread takes which"},
    {"bank-layout", "padding or swizzle of tiles in shared memory"},
    {"block-order", "the order in which blocks walk the output's tiles"},
    {"cache-hints", "what the caches keep, and for how long"},
    {"cluster", "blocks of a cluster that share data"},
    {"atomics", "how results of many threads are added up"},
    {"fusion", "several kernels or steps in one"},
    {"graph", "launches recorded once and replayed as a CUDA graph"},
    {"streams", "kernels and copies that run side by side"},
    {"host", "copies, waits and allocations by the host within the call"},
    {"divergence", "lanes of a warp that take different ways"},
    {"fast-math", "cheaper forms of functions and divisions"},
    {"precision", "number formats of intermediate values"},
    {"index-arithmetic", "how addresses and indices are computed"},
    {"synchronization", "barriers, fences and waits"},
    {"work-distribution", "which block does which work, and when"},
    {"algorithm", "a different way of computing the same"},
};
}  // namespace

const Tag* find_tag(std::string_view name) {
  for (const Tag& tag : kTags) {
    if (tag.name == name) return &tag;
  }
  return nullptr;
}

}  // namespace kernelpro
