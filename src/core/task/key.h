// SPDX-License-Identifier: Apache-2.0
// Keys of the input generator (core/task/inputs.h), and other secrets of the judge. They come from
// the kernel's generator, each by itself, so that none tells anything about another. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/task/inputs.h"

namespace kp {
inline bool operator==(const Key& a, const Key& b) {
  for (int i = 0; i < 8; ++i) {
    if (a.words[i] != b.words[i]) return false;
  }
  return true;
}
}  // namespace kp

namespace kernelpro {

kp::Key fresh_key();
// For orders, choices and poison.
std::uint64_t fresh_secret();

// A key that anyone can compute: KernelBench's trial numbers, and tests.
kp::Key key_of(std::uint64_t seed);
// Its first 64 bits, for generators that take no more (PyTorch's); seed_of(key_of(n)) == n.
std::uint64_t seed_of(const kp::Key& key);

// 64 hexadecimal digits.
std::string key_to_text(const kp::Key& key);
std::optional<kp::Key> key_from_text(std::string_view text);

}  // namespace kernelpro
