// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/knobs.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

std::string failure(std::string_view source, const std::vector<std::string>& reserved = {}) {
  const auto knobs = parse_knobs(source, reserved);
  return knobs ? "" : knobs.error().message;
}

TEST(Knobs, AreReadInOrderWithTheirTags) {
  const auto knobs = parse_knobs(
      "#include \"task.h\"\n"
      "// @knob TILE 16 32 64 : tile-size\n"
      "int x;\n"
      "  // @knob TYPE float4 4u 0.5f -1 1e-3 : vectorize, unroll\n"
      "//@knob PLAIN 1\r\n");
  ASSERT_TRUE(knobs) << knobs.error().message;
  ASSERT_EQ(knobs->size(), 3u);
  EXPECT_EQ((*knobs)[0].name, "TILE");
  EXPECT_EQ((*knobs)[0].values, (std::vector<std::string>{"16", "32", "64"}));
  EXPECT_EQ((*knobs)[0].tags, std::vector<std::string>{"tile-size"});
  EXPECT_EQ((*knobs)[0].line, 2);
  EXPECT_EQ((*knobs)[1].values, (std::vector<std::string>{"float4", "4u", "0.5f", "-1", "1e-3"}));
  EXPECT_EQ((*knobs)[1].tags, (std::vector<std::string>{"vectorize", "unroll"}));
  EXPECT_EQ((*knobs)[2].values, std::vector<std::string>{"1"});
  EXPECT_TRUE((*knobs)[2].tags.empty());
  EXPECT_EQ(default_values(*knobs),
            (KnobValues{{"PLAIN", "1"}, {"TILE", "16"}, {"TYPE", "float4"}}));
}

TEST(Knobs, OtherWordsAfterTheColonAreARemark) {
  const auto knobs = parse_knobs("// @knob MAP 0 1 : each block's tiles\n// @knob PREF 4 2 : L2\n");
  ASSERT_TRUE(knobs) << knobs.error().message;
  EXPECT_EQ((*knobs)[0].values, (std::vector<std::string>{"0", "1"}));
  for (const Knob& knob : *knobs) EXPECT_TRUE(knob.tags.empty());
}

TEST(Knobs, OnlyCommentsOnTheirOwnLineDeclareThem) {
  const auto knobs = parse_knobs(
      "int a;  // @knob BEHIND 1\n"
      "/*\n// @knob OFF 1\n*/\n"
      "const char* s = \"\\\" // @knob\";\n"
      "const char* r = R\"x(\n// @knob RAW 1\n)x\";\n"
      "int n = 1'000'000;\n"
      "// @knobs are explained here\n"
      "// @knob ON 1\n");
  ASSERT_TRUE(knobs) << knobs.error().message;
  ASSERT_EQ(knobs->size(), 1u);
  EXPECT_EQ(knobs->front().name, "ON");
  EXPECT_EQ(knobs->front().line, 11);
}

TEST(Knobs, FaultsNameTheLineAndTheCause) {
  EXPECT_EQ(failure("\n// @knob TILE\n"), "line 2: the knob TILE has no values");
  EXPECT_EQ(failure("// @knob TILE : tile-size\n"), "line 1: the knob TILE has no values");
  EXPECT_EQ(failure("// @knob\n"), "line 1: a @knob without a name");
  EXPECT_EQ(failure("// @knob A 1 2 1\n"), "line 1: the knob A lists the value 1 twice");
  EXPECT_EQ(failure("// @knob A 1\n// @knob A 2\n"),
            "line 2: the knob A is declared with other values in line 1");
  for (const char* twice : {"// @knob A 1 2 : tile-size\n// @knob A 1 2\n",
                            "// @knob A 1 2\n// @knob A 1 2 : tile-size\n"}) {
    const auto said = parse_knobs(twice);
    ASSERT_TRUE(said) << said.error().text();
    ASSERT_EQ(said->size(), 1u) << twice;
    EXPECT_EQ(said->front().tags, std::vector<std::string>{"tile-size"}) << twice;
  }
  EXPECT_EQ(failure("// @knob ROWS 1\n", {"ROWS"}),
            "line 1: the knob ROWS has the name of a task's constant");
  for (const char* value : {"1;", "a(b)", "\"x\"", "1-2", "-", "a\\", "x+y", "1,2"}) {
    EXPECT_TRUE(contains(failure("// @knob A " + std::string(value)), "has the value")) << value;
  }
}

TEST(Knobs, NamesThatWouldChangeTheHeadersAreRefused) {
  for (const char* name : {"int", "NULL", "INT_MAX", "launch", "Args", "KP_X", "kp", "A__B", "_A",
                           "CUDART_VERSION", "FLT_MAX", "M_PI", "threadIdx", "9A", "A-B", "dim"}) {
    EXPECT_NE(name_problem(name), "") << name;
    EXPECT_TRUE(contains(failure("// @knob " + std::string(name) + " 1"), "cannot have this name"))
        << name;
  }
  for (const char* name : {"TILE", "N", "M_TILE", "vec", "_a", "BLOCK_M", "T"}) {
    EXPECT_EQ(name_problem(name), "") << name;
  }
}

TEST(ApplyKnobs, DefinesFollowTheLastLeadingInclude) {
  const std::string head =
      "// a comment\n"
      "\n"
      "#pragma GCC optimize(\"O3\")\n"
      "/* a longer\n   one */\n"
      "#include \"task.h\"\n"
      "#define HALF 2\n"
      "#include <cmath>  /* goes\n on */\n";
  const std::string tail = "\nint x = TILE;\n#include \"late.h\"\n";
  EXPECT_EQ(apply_knobs(head + tail, {{"TILE", "32"}, {"VEC", "float4"}}, "#pragma nv_hdrstop"),
            head + "#pragma nv_hdrstop\n#define TILE 32\n#define VEC float4\n#line 10\n" + tail);
}

TEST(ApplyKnobs, AConditionAroundIncludesIsLeftWhole) {
  const std::string head = "#ifdef __linux__\n#include <a.h>\n#else\n#include <b.h>\n#endif\n";
  EXPECT_EQ(apply_knobs(head + "int x;\n", {{"A", "1"}}), head + "#define A 1\n#line 6\nint x;\n");
  const std::string guard = "#ifndef G\n#define G\n#include <a.h>\n";
  EXPECT_EQ(apply_knobs(guard + "int x;\n#endif\n", {{"A", "1"}}),
            guard + "#define A 1\n#line 4\nint x;\n#endif\n");
}

TEST(ApplyKnobs, SourcesWithoutIncludesOrLineEnds) {
  EXPECT_EQ(apply_knobs("int x;", {{"A", "1"}}), "#define A 1\n#line 1\nint x;");
  EXPECT_EQ(apply_knobs("#include <a>", {{"A", "1"}}), "#include <a>\n#define A 1\n#line 2\n");
  EXPECT_EQ(apply_knobs("", {}), "#line 1\n");
  EXPECT_EQ(apply_knobs("#include \\\n  <a>\nint x;\n", {}),
            "#include \\\n  <a>\n#line 3\nint x;\n");
}

TEST(CandidateOf, ChosenValuesMustBeOnesThatTheSourceDeclares) {
  const auto knobs = [](const KnobValues& chosen, Language language = Language::kCpp) {
    const auto made =
        candidate_of(Task(), language, "// @knob A 1 2 4\n// @knob B 2 1\n// @require A <= B\n",
                     {Origin::kGiven, 0, "", {}}, chosen);
    return made ? knobs_to_text(made->knobs) : made.error().text();
  };
  EXPECT_EQ(knobs({}), "A=1 B=2");
  EXPECT_EQ(knobs({{"A", "2"}}), "A=2 B=2");
  EXPECT_TRUE(contains(knobs({{"C", "2"}}), "no knob C")) << knobs({{"C", "2"}});
  EXPECT_TRUE(contains(knobs({{"A", "3"}}), "its values are: 1 2 4"));
  EXPECT_TRUE(contains(knobs({{"A", "4"}}), "do not meet the kernel's `@require A <= B`"));
  EXPECT_EQ(knobs({}, Language::kPython), "");
}

}  // namespace
}  // namespace kernelpro
