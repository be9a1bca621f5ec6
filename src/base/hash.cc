// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <xxhash.h>

#include <cinttypes>
#include <cstdio>

namespace kernelpro {

std::string hash_hex(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  char text[33];
  std::snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, h.high64, h.low64);
  return text;
}

std::string hash_hex(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) {
    all += std::to_string(part.size());
    all += ':';
    all += part;
  }
  return hash_hex(all);
}

}  // namespace kernelpro
