// SPDX-License-Identifier: Apache-2.0
// ncu's details page as text. Written by hand after the layout that ncu 2020 to 2025 prints.
#include "profile/import/ncu_details.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "profile/import/ncu.h"

namespace kernelpro {
namespace {

const std::string kText = R"(==PROF== Connected to process 828 (/tmp/app.out)
==PROF== Profiling "scale" - 0: 0%....50%....100% - 8 passes
max error 0.000000
==PROF== Disconnected from process 828
[828] app.out@127.0.0.1
  void scale<float>(T1 *, const T1 *, int) (4096, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Ghz         2.62
    SM Frequency                    Ghz         1.50
    Elapsed Cycles                cycle      960,000
    Memory Throughput                 %        86.36
    DRAM Throughput                   %        81.50
    Duration                         us       640.25
    SM Active Cycles              cycle   843,909.21
    ----------------------- ----------- ------------

    OPT   This kernel exhibits low compute throughput and memory bandwidth utilization relative to the peak of 60.0

    Section: Launch Statistics
    -------------------------------- --------------- ---------------
    Metric Name                          Metric Unit    Metric Value
    -------------------------------- --------------- ---------------
    Block Size                                                   256
    Function Cache Configuration                     CachePreferNone
    Registers Per Thread             register/thread              18
    # SMs                                         SM             132
    Waves Per SM                                                3.88
    -------------------------------- --------------- ---------------

    Section: Occupancy
    ------------------------------- ----------- ------------
    Metric Name                     Metric Unit Metric Value
    ------------------------------- ----------- ------------
    Block Limit SM                        block           32
    Theoretical Occupancy                     %          100
    Achieved Active Warps Per SM           warp        51.20
    ------------------------------- ----------- ------------

)";

void expect_scale(const NcuImport& import) {
  ASSERT_EQ(import.evidence.kernels.size(), 1u);
  const Evidence& k = import.evidence.kernels[0].facts;
  EXPECT_DOUBLE_EQ(k.get("gpu__time_duration.sum").value_or(0), 640250);
  EXPECT_DOUBLE_EQ(k.get("gpc__cycles_elapsed.max").value_or(0), 960000);
  EXPECT_DOUBLE_EQ(k.get("sm__cycles_active.avg").value_or(0), 843909.21);
  EXPECT_DOUBLE_EQ(k.get("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed").value_or(0),
                   81.5);
  EXPECT_DOUBLE_EQ(k.get("launch__registers_per_thread").value_or(0), 18);
  EXPECT_DOUBLE_EQ(k.get("launch__waves_per_multiprocessor").value_or(0), 3.88);
  EXPECT_DOUBLE_EQ(k.get("launch__occupancy_limit_blocks").value_or(0), 32);
  EXPECT_DOUBLE_EQ(k.get("launch__block_size").value_or(0), 256);
  EXPECT_DOUBLE_EQ(k.get("smsp__warps_active.avg.per_cycle_active").value_or(0), 12.8);
}

TEST(NcuDetails, AsNcuPrintsIt) {
  EXPECT_TRUE(is_ncu_details(kText));
  const auto got = import_ncu_details(kText, {});
  ASSERT_TRUE(got) << got.error().text();
  expect_scale(*got);
  EXPECT_EQ(got->evidence.kernels[0].name, "void scale<float>(T1 *, const T1 *, int)");
  EXPECT_DOUBLE_EQ(*got->evidence.kernels[0].facts.get("launch__grid_size"), 4096);
  EXPECT_EQ(got->evidence.texts.at("arch"), "sm_90");
  EXPECT_DOUBLE_EQ(*got->evidence.get("machine.parallel_units"), 132);
  EXPECT_EQ(got->programs, std::vector<std::string>{"/tmp/app.out"});
  const std::string notes = join_text(got->notes, "\n");
  EXPECT_TRUE(contains(notes, "Memory Throughput")) << notes;
  EXPECT_FALSE(contains(notes, "exhibits")) << notes;
}

// Quoted in a mail, in a Markdown table, without alignment, with Windows's line ends.
TEST(NcuDetails, AsPeoplePasteIt) {
  std::string text = kText;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\n", "\n> "},
                                 {"    ", "  "},
                                 {"\n", "\r\n"},
                                 {"\n    ", "\n| "}}) {
    const auto got = import_ncu_details(replace_all(text, from, to), {});
    ASSERT_TRUE(got) << from << ": " << got.error().text();
    expect_scale(*got);
  }
  const auto cut = import_ncu_details(kText.substr(kText.find("    Section")), {});
  ASSERT_TRUE(cut) << cut.error().text();
  expect_scale(*cut);
}

TEST(NcuDetails, SeveralLaunchesAndOldVersions) {
  const std::string old =
      "  k(float *), 2020-Sep-01 12:00:00, Context 1, Stream 7\n"
      "    Section: GPU Speed Of Light\n"
      "    Metric Name   Metric Unit   Metric Value\n"
      "    Duration      usecond       10.00\n";
  const auto got = import_ncu_details(old + old + replace_all(old, "k(", "m("), {});
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->launches, 3);
  ASSERT_EQ(got->evidence.kernels.size(), 2u);
  EXPECT_EQ(got->evidence.kernels[0].name, "k(float *)");
  EXPECT_DOUBLE_EQ(*got->evidence.kernels[0].facts.get("gpu__time_duration.sum"), 20000);
  const auto one = import_ncu_details(old + replace_all(old, "k(", "m("), {1, "m("});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->launches, 1);
}

TEST(NcuDetails, OtherTextIsNone) {
  for (const std::string text :
       {"", "Section: a chapter\nof a book, 3\n", "\"Kernel Name\",\"Metric Value\"\n"}) {
    EXPECT_FALSE(is_ncu_details(text)) << text;
    const auto got = import_ncu_details(text, {});
    ASSERT_FALSE(got);
    EXPECT_FALSE(got.error().next.empty());
  }
  const auto refused =
      import_ncu_details("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", {});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().next, "NVreg_RestrictProfilingToAdminUsers"));
}

TEST(NcuDetails, CutOffAnywhere) {
  for (std::size_t length = 0; length < kText.size(); length += 11) {
    static_cast<void>(import_ncu_details(kText.substr(0, length), {}));
  }
}

}  // namespace
}  // namespace kernelpro
