// SPDX-License-Identifier: Apache-2.0
// A user's file cannot exhaust the machine. Real Python with real PyTorch.
#include <gtest/gtest.h>

#include "base/text.h"
#include "task/reference/module_reference.h"
#include "task/reference/python.h"

namespace kernelpro {
namespace {

constexpr std::int64_t kLimit = 2LL << 30;

// Takes 100 MB ten times a second, up to 6 GB; `where`: the line before which it does so.
std::string hungry(const std::string& where) {
  return replace_all(
      "import time\nimport torch\nimport torch.nn as nn\nkept = []\ndef grow():\n"
      "    for i in range(60):\n        kept.append(b'x' * (100 << 20))\n"
      "        time.sleep(0.1)\n"
      "class Model(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
      "def get_inputs():\n    return [torch.rand(64, 64)]\n"
      "def get_init_inputs():\n    return []\n",
      where, "    grow()\n" + where);
}

TEST(MemoryLimit, AModuleThatTakesAllMemoryIsEnded) {
  if (!find_python("")) GTEST_SKIP() << "PyTorch is not installed";
  ReferenceSettings settings;
  settings.target = TargetKind::kCpu;
  settings.memory_bytes = kLimit;
  auto limited = ModuleReference::start(settings);
  ASSERT_TRUE(limited) << limited.error().text();
  const auto described = (*limited)->describe(hungry("    return [torch.rand(64, 64)]\n"), "", {});
  ASSERT_FALSE(described);
  EXPECT_EQ(described.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(contains(described.error().message, "of memory and was ended"))
      << described.error().text();
  EXPECT_TRUE(contains(described.error().next, "--set")) << described.error().text();
}

}  // namespace
}  // namespace kernelpro
