// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(Hash, IsXxh3Of128Bits) {
  // The published XXH3_128bits of empty input, seed 0.
  EXPECT_EQ(hash_hex(std::string_view("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_hex(std::string_view("a")).size(), 32u);
  EXPECT_NE(hash_hex(std::string_view("a")), hash_hex(std::string_view("b")));
  EXPECT_NE(hash_hex(std::string_view("a\0b", 3)), hash_hex(std::string_view("a")));
}

TEST(Hash, PartsKeepTheirBorders) {
  EXPECT_NE(hash_hex({"ab", "c"}), hash_hex({"a", "bc"}));
  EXPECT_NE(hash_hex({"ab", ""}), hash_hex({"", "ab"}));
  EXPECT_NE(hash_hex({"1:a", "b"}), hash_hex({"1", "a1:b"}));
  EXPECT_EQ(hash_hex({"x", "y"}), hash_hex({"x", "y"}));
}

}  // namespace
}  // namespace kernelpro
