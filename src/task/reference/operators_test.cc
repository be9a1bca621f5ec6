// SPDX-License-Identifier: Apache-2.0
// kernelpro_torch/operators.py on the CPU: a counter that the test moves stands for a capture's
// steps.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/evidence/operators_json.h"
#include "task/reference/python.h"

namespace kernelpro {
namespace {

// Operators that launch nothing on a GPU take no step.
constexpr const char* kScript = R"py(
import json, torch
from kernelpro_torch.operators import Operators

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, bias=False)
        self.bn = torch.nn.BatchNorm2d(8)
        self.fc = torch.nn.Linear(8, 4)
    def forward(self, x):
        y = torch.relu_(self.bn(self.conv(x)))
        y = y.mean((2, 3)) + y.amax((2, 3)).expand(2, 8)
        return self.fc(y)

class Counting(Operators):
    steps = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        before = len(self.calls)
        name = func.overloadpacket.__name__
        self.moves = name not in ("t", "empty", "empty_like", "expand", "detach", "view")
        self.first = True
        return super().__torch_dispatch__(func, types, args, kwargs)
    def count(self):
        if not self.first and self.moves:
            self.steps += 1
        self.first = False
        return self.steps

model = Model().eval()
x = torch.ones(2, 3, 10, 10)
with torch.no_grad():
    watch = Counting(model, lambda: watch.count())
    with watch:
        out = model(x)
        target = torch.empty_like(out)
        target.copy_(out)
print("TAGGED" if hasattr(getattr(torch, "Tag", None), "pointwise") else "")
print("CALLS" + json.dumps(watch.calls))
)py";

TEST(Operators, KnowWhatTheyReadAndFromWhom) {
  const auto python = find_python("");
  if (!python) GTEST_SKIP() << python.error().message;
  const TempDir folder;
  const std::string script = join(folder.path(), "script.py");
  ASSERT_TRUE(write_file(script, kScript));
  Command command;
  command.argv = {python->interpreter, "-B", script};
  command.env = {"PYTHONPATH=" + std::string(KERNELPRO_SOURCE_DIR) + "/python", "LC_ALL=C.UTF-8"};
  command.limits.wall_seconds = 600;
  const auto exit = run(command);
  ASSERT_TRUE(exit && exit->ok()) << (exit ? exit->output : exit.error().text());
  const std::size_t at = exit->output.find("CALLS");
  ASSERT_NE(at, std::string::npos) << exit->output;
  const std::string json = exit->output.substr(at + 5);
  const auto calls = operators_from_json(plain::Plain::parse(json, nullptr, false));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    names.push_back(calls[i].name);
    EXPECT_EQ(calls[i].first, static_cast<int>(i));
    EXPECT_EQ(calls[i].nodes, 1);
  }
  ASSERT_EQ(names, (std::vector<std::string>{"convolution", "native_batch_norm", "relu_", "mean",
                                             "amax", "add", "addmm", "copy_"}))
      << json;
  const OperatorCall &conv = calls[0], &relu = calls[2], &add = calls[5], &product = calls[6],
                     &copy = calls[7];
  EXPECT_EQ(operator_words(conv.name, conv.where), "`convolution` (conv)");
  EXPECT_EQ(conv.kind, OperatorKind::kProduct);
  EXPECT_EQ(conv.read_bytes, 4 * (2 * 3 * 100 + 8 * 3 * 9));
  EXPECT_EQ(conv.written_bytes, 4 * 2 * 8 * 64);
  EXPECT_EQ(conv.flops, 2.0 * (2 * 8 * 64) * 27);
  EXPECT_TRUE(conv.from.empty());
  // PyTorch 1 has no tags for kinds.
  const bool tagged = contains(exit->output, "TAGGED");
  EXPECT_EQ(relu.kind, tagged ? OperatorKind::kPointwise : OperatorKind::kOther);
  ASSERT_EQ(relu.from.size(), 1u) << "in place, and yet it reads";
  EXPECT_EQ(relu.from[0].bytes, conv.written_bytes);
  EXPECT_EQ(calls[1].kind, OperatorKind::kPointwise) << "it is not training";
  EXPECT_EQ(calls[3].kind, OperatorKind::kReduction);
  ASSERT_EQ(calls[3].from.size(), 1u);
  EXPECT_EQ(calls[3].from[0].from, 2) << "the one that wrote it last";
  EXPECT_EQ(add.from.size(), 2u);
  EXPECT_EQ(product.flops, 2.0 * 2 * 4 * 8);
  EXPECT_EQ(copy.kind, OperatorKind::kCopy);
  EXPECT_EQ(copy.read_bytes, 32) << "its target is only written";
}

}  // namespace
}  // namespace kernelpro
