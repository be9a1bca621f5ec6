// SPDX-License-Identifier: Apache-2.0
#include "report/labels.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

// What the evaluators set has a meaning here.
TEST(Labels, EveryOneThatIsSetIsKnown) {
  const std::string source = std::string(KERNELPRO_SOURCE_DIR) + "/src/measure/cuda/";
  int found = 0;
  for (const std::string& name : list_dir(source)) {
    if (!name.ends_with(".cc")) continue;
    const auto text = read_file(source + name);
    ASSERT_TRUE(text);
    for (const std::string& call : {std::string("label(\""), std::string("labels_.push_back(\""),
                                    std::string("labels.push_back(\"")}) {
      for (std::size_t at = text->find(call); at != std::string::npos; at = text->find(call, at)) {
        at += call.size();
        const std::string label = text->substr(at, text->find('"', at) - at);
        EXPECT_FALSE(label_meaning(label).empty()) << label;
        ++found;
      }
    }
  }
  EXPECT_GE(found, 6);
}

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
