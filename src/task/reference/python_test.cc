// SPDX-License-Identifier: Apache-2.0
#include "task/reference/python.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"

namespace kernelpro {
namespace {

// A candidate in Python imports what its user's Python does: `pip install --target DIR` too.
TEST(Python, AFolderOnPythonpathIsRead) {
  const std::string interpreter = find_program("python3");
  if (interpreter.empty()) GTEST_SKIP() << "Python is not installed";
  TempDir packages;
  ASSERT_TRUE(make_dirs(join(packages.path(), "torch")));
  ASSERT_TRUE(write_file(join(packages.path(), "torch/__init__.py"), ""));
  ASSERT_TRUE(write_file(join(packages.path(), "torch/version.py"), "__version__ = '2.11.0'\n"));
  const char* before = std::getenv("PYTHONPATH");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("PYTHONPATH", (packages.path() + ":/tmp").c_str(), 1);
  const Result<PythonFacts> facts = find_python(interpreter);
  if (before != nullptr) {
    ::setenv("PYTHONPATH", kept.c_str(), 1);
  } else {
    ::unsetenv("PYTHONPATH");
  }
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->torch_version, "2.11.0");
  const std::vector<std::string> roots = python_roots(*facts);
  EXPECT_EQ(std::ranges::count(roots, packages.path()), 1);
  EXPECT_EQ(std::ranges::count(roots, "/tmp"), 0) << "others' files lie there";
  EXPECT_NE(std::ranges::count(roots, dirname(facts->interpreter)), 0);
}

}  // namespace
}  // namespace kernelpro
