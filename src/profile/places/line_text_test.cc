// SPDX-License-Identifier: Apache-2.0
#include "profile/places/line_text.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "core/candidate/knobs.h"

namespace kernelpro {
namespace {

// A source is compiled with its knobs' values in front, and is shown without them.
TEST(CompiledLines, AreThoseOfTheSourceWithoutItsKnobs) {
  const std::string source =
      "// idea: tiles\n#include \"task.h\"\n// @knob TILE 32 64\n__global__ void k() {\n"
      "  work(TILE);\n}\n";
  const std::vector<std::string> shown = lines(source);
  for (const KnobValues& values :
       {KnobValues{}, KnobValues{{"TILE", "32"}},
        KnobValues{{"TILE", "32"}, {"UNROLL", "4"}, {"VEC", "float4"}}}) {
    const std::string compiled =
        apply_knobs(source, values) + "\n#line 1 \"kernelpro_call\"\nint other;\n";
    std::vector<std::string> got = compiled_lines(compiled);
    ASSERT_GE(got.size(), shown.size());
    for (std::size_t i = 0; i < shown.size(); ++i) EXPECT_EQ(got[i], shown[i]) << "line " << i + 1;
    for (const std::string& each : got) EXPECT_FALSE(contains(each, "other"));
  }
  EXPECT_TRUE(compiled_lines("#line 0\nx\n").empty());
  EXPECT_TRUE(compiled_lines("#line 2000000000\nx\n").empty());
  EXPECT_TRUE(compiled_lines("#line x\nx\n").empty());
  EXPECT_TRUE(compiled_lines("#line \f\nx\n").empty());
  EXPECT_EQ(compiled_lines("a\n#line 1\nb\n"), std::vector<std::string>{"b"});
}

}  // namespace
}  // namespace kernelpro
