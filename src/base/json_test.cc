// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(Json, DepthCountsBracketsOutsideOfStrings) {
  EXPECT_FALSE(nests_deeper("", 0));
  EXPECT_FALSE(nests_deeper("7", 0));
  EXPECT_TRUE(nests_deeper("[]", 0));
  EXPECT_FALSE(nests_deeper(R"([{"a": [1]}, {"b": [2]}])", 3));
  EXPECT_TRUE(nests_deeper(R"([{"a": [1]}, {"b": [2]}])", 2));
  EXPECT_FALSE(nests_deeper(R"(["[[[\"[[[", "\\"])", 1));
  EXPECT_TRUE(nests_deeper(R"(["\\", [1]])", 1)) << "a backslash that is itself escaped";
  EXPECT_FALSE(nests_deeper("[\"[[[", 1)) << "a string without an end";
  EXPECT_TRUE(nests_deeper(std::string(100000, '['), 64));
}

}  // namespace
}  // namespace kernelpro
