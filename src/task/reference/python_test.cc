// SPDX-License-Identifier: Apache-2.0
#include "task/reference/python.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"

namespace kernelpro {
namespace {

// A candidate in Python imports what its user's Python does: `pip install --target DIR` too.
TEST(Python, AFolderOnPythonpathIsRead) {
  const std::string installed = find_program("python3");
  if (installed.empty()) GTEST_SKIP() << "Python is not installed";
  const TempDir folder;
  const std::string packages = join(folder.path(), "packages"),
                    homes = join(folder.path(), "homes");
  ASSERT_TRUE(make_dirs(join(packages, "torch")));
  ASSERT_TRUE(write_file(join(packages, "torch/__init__.py"), ""));
  ASSERT_TRUE(write_file(join(packages, "torch/version.py"), "__version__ = '2.11.0'\n"));
  std::filesystem::create_symlink("/home", homes);
  // Answers are remembered by the interpreter's path: a link of its own.
  const std::string interpreter = join(folder.path(), "python3");
  std::filesystem::create_symlink(installed, interpreter);
  const std::string here = std::filesystem::current_path().string();
  const char* before = std::getenv("PYTHONPATH");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("PYTHONPATH", (packages + ":/tmp:" + homes + ":" + here + ":" + cache_dir()).c_str(), 1);
  const Result<PythonFacts> facts = find_python(interpreter);
  const auto roots = facts ? candidate_roots(*facts) : std::vector<std::string>();
  if (before != nullptr) {
    ::setenv("PYTHONPATH", kept.c_str(), 1);
  } else {
    ::unsetenv("PYTHONPATH");
  }
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->torch_version, "2.11.0");
  EXPECT_EQ(std::ranges::count(roots, packages), 1);
  for (const std::string& closed :
       {std::string("/tmp"), std::string("/home"), homes, here, cache_dir()}) {
    EXPECT_EQ(std::ranges::count(roots, closed), 0) << closed;
  }
}

}  // namespace
}  // namespace kernelpro
