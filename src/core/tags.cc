// SPDX-License-Identifier: Apache-2.0
#include "core/tags.h"

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
    {"algorithm", "a different way of computing the same"},
};
}  // namespace

std::span<const Tag> tags() { return kTags; }

const Tag* find_tag(std::string_view name) {
  for (const Tag& tag : kTags) {
    if (tag.name == name) return &tag;
  }
  return nullptr;
}

}  // namespace kernelpro
