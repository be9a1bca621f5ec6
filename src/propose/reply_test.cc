// SPDX-License-Identifier: Apache-2.0
#include "propose/reply.h"

#include <gtest/gtest.h>

#include "base/text.h"

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
  EXPECT_TRUE(contains(refusal(std::string("launch\0", 7)), "not UTF-8 text"));
  EXPECT_TRUE(contains(refusal("launch \xff\xfe"), "not UTF-8 text"));
  EXPECT_TRUE(contains(refusal(std::string(5 << 20, 'x')), "at most"));
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
