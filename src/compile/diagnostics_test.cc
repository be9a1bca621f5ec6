// SPDX-License-Identifier: Apache-2.0
#include "compile/diagnostics.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

// Recorded from g++ 12.2.
constexpr const char* kGcc =
    "/tmp/staging/a1/kernel.cpp: In function 'void launch(const Args&)':\n"
    "/tmp/staging/a1/kernel.cpp:7:12: warning: unused variable 'k' [-Wunused-variable]\n"
    "    7 |   int k = 1;\n"
    "      |       ^\n"
    "/tmp/staging/a1/kernel.cpp:12:3: error: 'foo' was not declared in this scope\n"
    "   12 |   foo(1);\n"
    "      |   ^~~\n";

TEST(Diagnostics, ErrorsComeFirstWithTheirLinesAndWithoutOurFolders) {
  const std::string log = trim_diagnostics(kGcc, {"/tmp/staging/a1"});
  EXPECT_TRUE(log.starts_with("kernel.cpp:12:3: error: 'foo'")) << log;
  EXPECT_TRUE(contains(log, "12 |   foo(1);"));
  EXPECT_TRUE(contains(log, "kernel.cpp:7:12: warning"));
  EXPECT_FALSE(contains(log, "/tmp"));
}

TEST(Diagnostics, ATemplateBombIsClippedAndTheNextErrorStays) {
  std::string bomb = "kernel.cpp:1:1: error: template instantiation depth exceeds maximum\n";
  for (int i = 0; i < 5000; ++i) bomb += "kernel.cpp:2:2:   recursively required from here\n  x\n";
  bomb += "kernel.cpp:9:1: error: expected ';'\n";
  const std::string log = trim_diagnostics(bomb, {});
  EXPECT_LT(log.size(), 4600u);
  EXPECT_TRUE(contains(log, "depth exceeds")) << log;
  EXPECT_TRUE(contains(log, "expected ';'")) << log;
}

TEST(Diagnostics, UnknownTextIsKeptFromTheBeginning) {
  EXPECT_EQ(trim_diagnostics("something odd\nhappened\n", {}), "something odd\nhappened");
  EXPECT_EQ(trim_diagnostics("", {}), "");
}

}  // namespace
}  // namespace kernelpro
