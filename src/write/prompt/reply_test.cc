// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/reply.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "write/prompt/code_text.h"

namespace kernelpro {
namespace {

const std::string kKernel = "#include \"task.h\"\nextern \"C\" void launch(const Args& a) {}\n";

std::string source(const std::string& reply, Language language = Language::kCpp) {
  const auto found = source_of_reply(reply, language);
  EXPECT_TRUE(found) << found.error().text();
  return found ? *found : "";
}

std::string refusal(const std::string& reply, Language language = Language::kCpp) {
  const auto found = source_of_reply(reply, language);
  EXPECT_FALSE(found) << *found;
  if (found) return "";
  EXPECT_FALSE(found.error().next.empty());
  return found.error().message;
}

TEST(Reply, APlainFileIsTheSource) { EXPECT_EQ(source(kKernel), kKernel); }

TEST(Reply, WindowsLineEndsBecomePlain) {
  EXPECT_EQ(source(replace_all(kKernel, "\n", "\r\n")), kKernel);
}

TEST(Reply, ProseAroundABlockIsLeftOut) {
  EXPECT_EQ(source("Here it is:\n\n```cpp\n" + kKernel + "```\n\nIt is faster since launch ...\n"),
            kKernel);
  EXPECT_EQ(source("~~~\n" + kKernel + "~~~"), kKernel);
}

TEST(Reply, BlocksThatAreNoKernelAreLeftOut) {
  EXPECT_EQ(source("Compile with\n```sh\nmake\n```\nand\n```c++\n" + kKernel + "```\n"), kKernel);
}

TEST(Reply, LongerFencesMayHoldShorterOnes) {
  const std::string inner = kKernel + "// ```\n";
  EXPECT_EQ(source("````\n" + inner + "````\n"), inner);
}

TEST(Reply, OnlyAFenceOfItsKindClosesABlock) {
  const std::string inner = "/*\n~~~~\n*/\n" + kKernel;
  EXPECT_EQ(source("```\n" + inner + "```\n"), inner);
  const std::string other = "/*\n````\n*/\n" + kKernel;
  EXPECT_EQ(source("~~~\n" + other + "~~~\n"), other);
}

TEST(Reply, CodeWithinALineOpensNoBlock) {
  EXPECT_EQ(source("```launch``` is new:\n```\n" + kKernel + "```\n"), kKernel);
}

TEST(Reply, FencesOfAnyLength) {
  const std::string mark(100, '`');
  EXPECT_EQ(source(mark + "\n" + kKernel + mark + "\n"), kKernel);
}

TEST(Reply, TwoKernelsAreOneTooMany) {
  const std::string two = "```\n" + kKernel + "```\nor\n```\n" + kKernel + "```\n";
  EXPECT_TRUE(contains(refusal(two), "2 blocks"));
}

TEST(Reply, WhatIsNoKernelIsRefused) {
  EXPECT_TRUE(contains(refusal(""), "empty"));
  EXPECT_TRUE(contains(refusal(" \n\t\n"), "empty"));
  EXPECT_TRUE(contains(refusal("I cannot help with that."), "does not define"));
  EXPECT_TRUE(contains(refusal("void launched() {}"), "does not define"));
  EXPECT_TRUE(contains(refusal("```\nint x;\n```\n"), "no block"));
  EXPECT_TRUE(contains(refusal("```cpp\n" + kKernel), "ends inside"));
  EXPECT_TRUE(contains(refusal(std::string("launch\0", 7)), "invalid UTF-8"));
  EXPECT_TRUE(contains(refusal("launch \xff\xfe"), "invalid UTF-8"));
  EXPECT_TRUE(contains(refusal(std::string(5 << 20, 'x')), "at most"));
}

// An explanation is not a source, however often it mentions the entry.
TEST(Reply, ProseIsNoSource) {
  const std::string explained =
      "I moved the loop out of launch, so that the compiler can vectorize it.\n";
  EXPECT_TRUE(contains(refusal(explained), "does not define"));
  EXPECT_TRUE(contains(refusal("// launch is what I would change\n"), "does not define"));
  const std::string inline_code =
      "You should write `extern \"C\" void launch(const Args& a) { ... }` and unroll the loop.\n";
  EXPECT_TRUE(contains(refusal(inline_code), "only code may be")) << refusal(inline_code);
  EXPECT_TRUE(contains(refusal("Here is a faster kernel for you:\n\n" + kKernel),
                       "Here is a faster kernel"));
  EXPECT_TRUE(contains(refusal(kKernel + "\nThis version doesn't read the input twice.\n"),
                       "doesn't read"));
  EXPECT_TRUE(contains(refusal("```text\n" + explained + "```\n"), "no block"));
  EXPECT_EQ(source("```text\n" + explained + "```\n```cpp\n" + kKernel + "```\n"), kKernel);
  EXPECT_TRUE(
      contains(refusal("The class ModelNew keeps the same weights as before.\n", Language::kPython),
               "only code may be"));
}

TEST(Reply, CommentsAndLiteralsMaySayAnything) {
  const std::string chatty =
      "/* This kernel reads every row once.\n   It is what launch does now. */\n"
      "#error this is not the compiler that\\\n you want to use here\n"
      "static const char* kText = \"this is a line of plain text\";  // and so is this one here\n"
      "static const char* kRaw = R\"x(so is all of this \"text\" here)x\";\n"
      "static const long kMany = 1'000'000; static const char kQuote = '\\'';\n" +
      kKernel;
  EXPECT_EQ(source(chatty), chatty);
  const std::string python =
      "\"\"\"This module does the same as before.\"\"\"\nclass ModelNew:\n"
      "    pass  # nothing is left to do here\n";
  EXPECT_EQ(source(python, Language::kPython), python);
}

// No kernel of this repository is mistaken for prose.
TEST(Reply, RealSourcesAreCode) {
  int seen = 0;
  for (const char* root : {"/examples", "/tests", "/bench", "/results", "/python"}) {
    const std::string folder = KERNELPRO_SOURCE_DIR + std::string(root);
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string path = file.path().string();
      const bool python = path.ends_with(".py");
      if (!python && !path.ends_with(".cu") && !path.ends_with(".cpp") && !path.ends_with(".cc")) {
        continue;
      }
      const auto text = read_file(path);
      ASSERT_TRUE(text) << path;
      EXPECT_EQ(first_prose(*text, python ? Language::kPython : Language::kCuda), "") << path;
      ++seen;
    }
  }
  EXPECT_GT(seen, 100);
}

TEST(Reply, PythonNeedsItsModel) {
  const std::string model = "class ModelNew:\n    pass\n";
  EXPECT_EQ(source("```python\n" + model + "```\n", Language::kPython), model);
  EXPECT_TRUE(contains(refusal(kKernel, Language::kPython), "ModelNew"));
}

TEST(Reply, IdeasStandInTheFirstLine) {
  EXPECT_EQ(idea_of("// idea: load float4\nint x;"), "load float4");
  EXPECT_EQ(idea_of("# idea: fuse\n"), "fuse");
  EXPECT_EQ(idea_of("int x; // idea: no\n"), "");
  EXPECT_EQ(idea_of("//idea:"), "");
}

TEST(Reply, ASourceNamesWhatItAnswers) {
  Diagnosis offered;
  for (const char* tool : {"scalar-loads", "small-grid"}) {
    Finding finding;
    finding.tool = tool;
    finding.prescriptions = {{"first-tag", "do it", ""}, {"unroll", "or this", ""}};
    offered.findings.push_back(finding);
  }
  const auto named = [&](const std::string& source) {
    const auto answer = named_answer(source, offered);
    return answer ? answer->text() : "nothing said";
  };
  EXPECT_EQ(named("// idea: x\n// answers: small-grid, unroll\nint x;"), "small-grid: unroll");
  EXPECT_EQ(named("# idea: x\n# answers: scalar-loads\n"), "scalar-loads: first-tag");
  EXPECT_EQ(named("// answers: no-such-tool, unroll\n"), "") << "an unknown tool is ignored";
  EXPECT_EQ(named("// answers: none\n"), "");
  EXPECT_EQ(named("// idea: answers: small-grid\n"), "nothing said");
  EXPECT_EQ(named(std::string(50, '\n') + "// answers: small-grid"), "nothing said");
  EXPECT_FALSE(offers_one(offered));
  offered.findings.pop_back();
  EXPECT_TRUE(offers_one(offered));
}

// Clusters alone are a plan too.
TEST(Reply, APlanOfClustersIsASource) {
  const std::string clusters =
      "#include \"task.h\"\n__global__ void k() {}\n"
      "KP_LAUNCH_CLUSTER(k, kp::dim(2), kp::dim(32), 0, kp::dim(2))\n";
  EXPECT_EQ(source(clusters, Language::kCuda), clusters);
  EXPECT_EQ(source("Here it is.\n```cuda\n" + clusters + "```\n", Language::kCuda), clusters);
}

}  // namespace
}  // namespace kernelpro
