// SPDX-License-Identifier: Apache-2.0
// The account of some recordings as it is shown: testdata/accounts.golden.md. To refresh it after a
// deliberate change: KERNELPRO_REFRESH=1 build/release/bin/test_diagnose
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "core/finding/account.h"
#include "diagnose/diagnose.h"

namespace kernelpro {
namespace {

const std::string kFolder = std::string(KERNELPRO_SOURCE_DIR) + "/src/diagnose";

// With counters and without, memory and arithmetic, one kernel and several, processors too.
constexpr const char* kRecordings[] = {"h200-softmax-wide",
                                       "h200-matmul-tail",
                                       "exchange-gemm_lag",
                                       "exchange-moe_b",
                                       "counted-gemm-wmma",
                                       "axpy-many_launches",
                                       "flaw-swiglu-four_kernels",
                                       "flaw-swiglu-four_kernels-uncounted",
                                       "flaw-row_abs_sum-tree_per_chunk",
                                       "flaw-relax_ode-wave_and_a_bit",
                                       "ablation-gemm_in_parts",
                                       "ablation-pooled_gemm",
                                       "cpu-matmul-one-thread",
                                       "cpu-softmax-packed"};

TEST(Account, IsShownOfRecordingsAsBefore) {
  std::string shown;
  for (const char* name : kRecordings) {
    const auto text = read_file(join(join(kFolder, "fixtures"), std::string(name) + ".json"));
    ASSERT_TRUE(text) << name;
    const auto holder = parse_json(*text);
    ASSERT_TRUE(holder) << name;
    const auto evidence = evidence_from_json(dump_json(JsonReader(*holder).object("evidence")));
    ASSERT_TRUE(evidence) << name;
    const Diagnosis diagnosis = diagnose(*evidence);
    double parts = 0;
    for (const AccountPart& part : diagnosis.account.parts) parts += part.us;
    EXPECT_EQ(parts, diagnosis.account.us) << name;
    const bool at_ceiling = diagnosis.fraction_of_ceiling >= kAtCeiling;
    shown +=
        "# " + std::string(name) + "\n" + account_to_text(diagnosis.account, at_ceiling) + "\n";
  }
  const std::string path = kFolder + "/testdata/accounts.golden.md";
  if (std::getenv("KERNELPRO_REFRESH") != nullptr) {
    ASSERT_TRUE(make_dirs(dirname(path)));
    ASSERT_TRUE(write_file(path, shown));
  }
  const auto expected = read_file(path);
  ASSERT_TRUE(expected) << "make it with KERNELPRO_REFRESH=1";
  const std::vector<std::string> before = lines(*expected), now = lines(shown);
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    ASSERT_EQ(now[i], before[i]) << "line " << i + 1 << "; refresh if this is meant";
  }
  EXPECT_EQ(now.size(), before.size());
}

}  // namespace
}  // namespace kernelpro
