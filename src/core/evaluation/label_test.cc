// SPDX-License-Identifier: Apache-2.0
#include "core/evaluation/label.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "core/evaluation/evaluation.h"

namespace kernelpro {
namespace {

TEST(Labels, ThePageHasARowForEach) {
  const auto page = read_file(std::string(KERNELPRO_SOURCE_DIR) + "/docs/evaluation.md");
  ASSERT_TRUE(page);
  for (const LabelRow& row : label_rows()) {
    EXPECT_TRUE(contains(*page, "| `" + std::string(row.name) + "` |")) << row.name;
    EXPECT_FALSE(row.meaning.empty());
    EXPECT_EQ(label_name(row.label), row.name);
    EXPECT_EQ(label_meaning(row.name), row.meaning);
  }
  EXPECT_EQ(label_meaning("no-such-label"), "");
  EXPECT_EQ(trust_meaning(trust_name(Trust::kModule)),
            "its Python code ran in a separate process, beside the data of one call");
}

TEST(Outcome, KindsHaveTheirNames) {
  for (std::size_t i = 0; i < std::variant_size_v<Outcome>; ++i) {
    const auto kind = static_cast<OutcomeKind>(i);
    EXPECT_EQ(outcome_kind(bare_outcome(kind)), kind);
    EXPECT_EQ(outcome_kind_from_name(outcome_name(kind)), kind);
  }
  EXPECT_EQ(outcome_kind(Outcome(Rejected())), OutcomeKind::kRejected);
  EXPECT_EQ(outcome_name(Outcome(WrongResult())), "wrong-result");
  EXPECT_FALSE(outcome_kind_from_name("perhaps"));
}

}  // namespace
}  // namespace kernelpro
