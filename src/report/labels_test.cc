// SPDX-License-Identifier: Apache-2.0
#include "report/labels.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

TEST(Labels, ThePageHasARowForEach) {
  const auto page = read_file(std::string(KERNELPRO_SOURCE_DIR) + "/docs/evaluation.md");
  ASSERT_TRUE(page);
  for (const Label& label : known_labels()) {
    EXPECT_TRUE(contains(*page, "| `" + std::string(label.name) + "` |")) << label.name;
    EXPECT_FALSE(label.meaning.empty());
  }
  EXPECT_EQ(label_meaning("no-such-label"), "");
}

}  // namespace
}  // namespace kernelpro
