// SPDX-License-Identifier: Apache-2.0
// The poison that reveals unwritten elements.
#include <cstring>

#include "core/task/inputs.h"
#include "core/task/mismatch.h"

namespace kernelpro {

Poison make_poison(DType dtype, std::uint64_t round) {
  const std::uint64_t noise = kp::mix64(round * 0x9e3779b97f4a7c15ull + 1);
  const std::uint64_t kind = round % 4;
  std::uint64_t bits = noise | 0x0101010101010101ull;
  std::size_t size = 8;
  // NaN with a payload, a huge value of either sign, or noise: a kernel that adds to its output, or
  // skips parts of it, cannot be right under all of them.
  switch (dtype) {
    case DType::kFp32: {
      size = 4;
      const std::uint32_t low = static_cast<std::uint32_t>(noise & 0xffff);
      if (kind == 0) bits = 0x7fc10000u | low;
      if (kind == 1) bits = 0x7e960000u | low;
      if (kind == 2) bits = 0xfe160000u | low;
      break;
    }
    case DType::kFp16:
      size = 2;
      if (kind == 0) bits = 0x7e00u | (noise & 0xff) | 1;
      if (kind == 1) bits = 0x7b00u | (noise & 0xff);
      if (kind == 2) bits = 0xfa00u | (noise & 0xff);
      break;
    case DType::kBf16:
      size = 2;
      if (kind == 0) bits = 0x7fc0u | (noise & 0x1f) | 1;
      if (kind == 1) bits = 0x7e80u | (noise & 0x3f);
      if (kind == 2) bits = 0xfe00u | (noise & 0x3f);
      break;
    case DType::kInt32:
    case DType::kInt64:
      break;
    case DType::kBool:
      size = 1;
      bits = 2 + kind;  // not a valid bool
      break;
  }
  Poison poison;
  poison.pattern.resize(8);
  for (std::size_t i = 0; i < 8; i += size) std::memcpy(poison.pattern.data() + i, &bits, size);
  return poison;
}

void fill_poison(const Poison& poison, void* data, std::int64_t bytes) {
  std::uint64_t word;
  std::memcpy(&word, poison.pattern.data(), sizeof word);
  char* at = static_cast<char*>(data);
  std::int64_t i = 0;
  for (; i + 8 <= bytes; i += 8) std::memcpy(at + i, &word, 8);
  std::memcpy(at + i, &word, static_cast<std::size_t>(bytes - i));
}

}  // namespace kernelpro
