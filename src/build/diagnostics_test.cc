// SPDX-License-Identifier: Apache-2.0
#include "build/diagnostics.h"

#include <gtest/gtest.h>

#include <cstdint>

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
  EXPECT_FALSE(contains(log, "warning")) << log;  // not why it failed
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

TEST(Diagnostics, WarningsAreShownWhereNothingFailed) {
  const std::string warning = "k.cpp:7:12: warning: unused variable 'k' [-Wunused-variable]";
  EXPECT_EQ(trim_diagnostics(warning + "\n" + warning + "\n", {}), warning);
}

// Recorded from nvcc 13.0 (ptxas) and the input that it names.
TEST(Diagnostics, LinesOfPtxBecomeLinesOfTheSource) {
  const std::string ptx =
      ".version 9.0\n.visible .entry _Z1kPf(\n{\n\t.loc\t1 2 31\n\tmov.u99 %r1, 1;\n}\n"
      "\t.file\t1 \"/tmp/staging/a1/kernel.cu\"\n";
  const std::string log =
      "ptxas ./kernel.ptx, line 5; error   : Unknown modifier '.u99'\n"
      "ptxas ./kernel.ptx, line 500; error   : Beyond the end\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n";
  const std::string got = trim_diagnostics(with_source_lines(log, ptx), {});
  EXPECT_TRUE(
      got.starts_with("kernel.cu(2): error: ptxas: Unknown modifier '.u99'\n"
                      "    mov.u99 %r1, 1;\n"))
      << got;
  EXPECT_TRUE(contains(got, "line 500")) << got;
  EXPECT_FALSE(contains(got, "aborted")) << got;
  EXPECT_EQ(with_source_lines("", ptx), "");
}

// Recorded from nvcc 13.0.
TEST(Diagnostics, NvccsSourceLinesReadAsTheyWereWritten) {
  const std::string got = trim_diagnostics(
      "kernel.cu(2): error: identifier \"nothing\" is undefined\n"
      "  __attribute__((global)) void k(float* y) { y[0] = nothing; }\n"
      "                                                    ^\n\n"
      "1 error detected in the compilation of \"kernel.cu\".\n",
      {});
  EXPECT_EQ(got,
            "kernel.cu(2): error: identifier \"nothing\" is undefined\n"
            "  __global__ void k(float* y) { y[0] = nothing; }\n"
            "                                       ^");
}

TEST(Diagnostics, NamesOfTheLinkerAndPtxasAreReadable) {
  EXPECT_EQ(trim_diagnostics("/usr/bin/ld: ./kernel.o: in function `launch':\n"
                             "kernel.cudafe1.cpp:(.text+0x202): undefined reference to `f(int)'\n"
                             "collect2: error: ld returned 1 exit status\n",
                             {}),
            "error: undefined reference to `f(int)'");
  EXPECT_EQ(trim_diagnostics("ptxas fatal   : Unresolved extern function '_Z7nowheref'\n", {}),
            "ptxas error: Unresolved extern function 'nowhere(float)'");
}

TEST(Diagnostics, ShownLinesAreTheAuthors) {
  const std::string log =
      "kernel.cpp:2:3: error: bad\n    2 | #line 2\n      |   ^\n"
      "/usr/include/x.h:2:3: note: here\n    2 | of the header\n";
  EXPECT_EQ(with_shown_lines(log, "kernel.cpp", "one\n  two();\nthree\n"),
            "kernel.cpp:2:3: error: bad\n    2 |   two();\n      |   ^\n"
            "/usr/include/x.h:2:3: note: here\n    2 | of the header\n");
}

TEST(Diagnostics, AnyBytesAreSafe) {
  std::string bytes;
  std::uint32_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 1664525u + 1013904223u;
    bytes += "\n ^:error`'_Z./(),0123line note: ptxas"[state >> 27];
  }
  EXPECT_LT(trim_diagnostics(with_shown_lines(with_source_lines(bytes, bytes), "1", bytes), {"./"})
                .size(),
            6000u);
}

TEST(Diagnostics, UnknownTextIsKeptFromTheBeginning) {
  EXPECT_EQ(trim_diagnostics("something odd\nhappened\n", {}), "something odd\nhappened");
  EXPECT_EQ(trim_diagnostics("", {}), "");
}

}  // namespace
}  // namespace kernelpro
