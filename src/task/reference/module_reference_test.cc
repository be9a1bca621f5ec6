// SPDX-License-Identifier: Apache-2.0
// Real Python with real PyTorch, on the cpu target: skipped where there is none.
#include "task/reference/module_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "task/reference/module_testing.h"

namespace kernelpro {
namespace {

ReferenceSettings cpu_settings() {
  ReferenceSettings settings;
  settings.target = TargetKind::kCpu;
  return settings;
}

// One process for all tests: importing torch takes seconds.
Result<std::unique_ptr<ModuleReference>>& reference() {
  static auto* started =
      new Result<std::unique_ptr<ModuleReference>>(ModuleReference::start(cpu_settings()));
  return *started;
}

#define NEED_TORCH()                                                         \
  if (!reference() && reference().error().kind == ErrorKind::kEnvironment) { \
    GTEST_SKIP() << reference().error().message;                             \
  }                                                                          \
  ASSERT_TRUE(reference()) << reference().error().text()

constexpr const char* kHead =
    "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n";

std::string module(const std::string& constructor, const std::string& forward,
                   const std::string& inputs, const std::string& top = "",
                   const std::string& parameters = "x") {
  return kHead + top +
         "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n" +
         (constructor.empty() ? ""
                              : "        " + replace_all(constructor, "\n", "\n        ") + "\n") +
         "    def forward(self, " + parameters + "):\n        " +
         replace_all(forward, "\n", "\n        ") + "\ndef get_inputs():\n    return [" + inputs +
         "]\ndef get_init_inputs():\n    return []\n";
}

// A module that is described, attached, drawn and computed.
struct Computed {
  explicit Computed(const std::string& text) : source(text) {
    auto described = (*reference())->describe(source, "", {});
    if (!described) {
      error = described.error().text();
      return;
    }
    description = *described;
    task = task_of(description, source);
    set = std::make_unique<TestSet>(task, c());
    const auto attached = (*reference())->attach(task, c(), 0, set->buffers());
    if (!attached) error = attached.error().text();
  }
  const Case& c() const { return task.cases[0]; }
  bool draw(DrawKind kind = DrawKind::kGiven, std::uint64_t seed = 7) {
    const auto facts = (*reference())->draw(c(), 0, seed, kind);
    if (!facts) error = facts.error().text();
    return facts && facts->changed;
  }
  std::string compute(Numerics numerics = Numerics::kFloat64, bool twice = false) {
    const auto facts = (*reference())->compute(c(), 0, numerics, twice);
    if (!facts) error = facts.error().text();
    return facts ? facts->random : "error";
  }
  std::vector<double> out(const std::string& name = "out") const {
    return set->values<double>(name);
  }
  std::vector<float> in(const std::string& name) const { return set->values<float>(name); }

  std::string source;
  std::string error;
  ModuleDescription description;
  Task task;
  std::unique_ptr<TestSet> set;
};

const ModuleDescription::Item* item(const ModuleDescription& d, const std::string& name) {
  for (const auto& each : d.items) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::string names(const ModuleDescription& d) {
  std::string text;
  for (const auto& each : d.items) text += each.name + " ";
  return text;
}

TEST(Describe, NamesTensorsInOrder) {
  NEED_TORCH();
  const auto d = (*reference())
                     ->describe(module("self.conv = nn.Conv2d(C, 4, 3)\n"
                                       "self.register_buffer('offset', torch.ones(4, 1, 1))",
                                       "return F.relu(self.conv(x)) + self.offset",
                                       "torch.rand(N, C, H, H)", "N = 2\nC = 3\nH = N * 4\n"),
                                "", {});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(names(*d), "x conv_weight conv_bias offset out ");
  EXPECT_EQ(item(*d, "x")->shape, (std::vector<std::int64_t>{2, 3, 8, 8}));
  EXPECT_EQ(item(*d, "conv_weight")->label, "conv.weight");
  EXPECT_EQ(item(*d, "conv_weight")->role, Role::kParameter);
  EXPECT_FALSE(item(*d, "conv_weight")->buffer);
  EXPECT_TRUE(item(*d, "offset")->buffer);
  EXPECT_EQ(item(*d, "out")->shape, (std::vector<std::int64_t>{2, 4, 6, 6}));
  EXPECT_EQ(item(*d, "out")->role, Role::kOutput);
  // H is derived: it follows and is not a dimension.
  EXPECT_EQ(d->dims, (std::map<std::string, std::int64_t>{{"N", 2}, {"C", 3}}));
  EXPECT_DOUBLE_EQ(d->matmul_flops, 2.0 * 2 * 4 * 36 * 3 * 9);
  EXPECT_GE(d->intermediate_bytes, 2 * 4 * 36 * 4);
}

TEST(Describe, ReplacesIntegersAtTheTop) {
  NEED_TORCH();
  const std::string source =
      module("", "return x.sum(dim=1)", "torch.rand(rows, half, 2)",
             "rows: int = 4 * 1024\ncols = -(-8)\na, b = 3, 5\nhalf = cols // 2\n");
  const auto d = (*reference())->describe(source, "", {{"rows", 6}, {"cols", 20}, {"b", 9}});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(item(*d, "x")->shape, (std::vector<std::int64_t>{6, 10, 2}));
  EXPECT_EQ(d->dims,
            (std::map<std::string, std::int64_t>{{"rows", 6}, {"cols", 20}, {"a", 3}, {"b", 9}}));
  const auto unknown = (*reference())->describe(source, "", {{"half", 3}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kTask);
  EXPECT_TRUE(contains(unknown.error().text(), "half")) << unknown.error().text();
}

TEST(Describe, FlattensArgumentsAndResults) {
  NEED_TORCH();
  const auto d =
      (*reference())
          ->describe(module("", "return {'sum': pair[0] + pair[1]['b'], 'all': (x, n * x)}",
                            "torch.rand(3), [torch.rand(3), {'b': torch.rand(3)}], 5, "
                            "0.5, True, None, 'mean'",
                            "", "x, pair, n, rate, flag, nothing, double"),
                     "", {});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(names(*d), "x pair_0 pair_1_b out_sum out_all_0 out_all_1 ");
  EXPECT_EQ(d->constants,
            (std::map<std::string, std::string>{
                {"n", "5"}, {"rate", "0.5"}, {"flag", "true"}, {"double_", "\"mean\""}}));
  EXPECT_TRUE(contains(d->note, "is the input x itself")) << d->note;
}

TEST(Describe, KeepsTypesAndGivesTiedWeightsOnce) {
  NEED_TORCH();
  const auto d =
      (*reference())
          ->describe(module("self.a = nn.Embedding(10, 4)\nself.b = nn.Linear(4, 10, bias=False)\n"
                            "self.b.weight = self.a.weight\nself.table = torch.arange(10)",
                            "y = self.b(self.a(i))\nreturn y, y.argmax(-1), m & (y.sum(-1) > 0)",
                            "torch.randint(0, 10, (6,)), torch.rand(6) > 0.5", "", "i, m"),
                     "", {});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(names(*d), "i m a_weight table out_0 out_1 out_2 ");
  EXPECT_EQ(item(*d, "i")->dtype, DType::kInt64);
  EXPECT_EQ(item(*d, "m")->dtype, DType::kBool);
  EXPECT_EQ(item(*d, "table")->dtype, DType::kInt64);  // a plain attribute
  EXPECT_EQ(item(*d, "out_1")->dtype, DType::kInt64);
  EXPECT_EQ(item(*d, "out_2")->dtype, DType::kBool);
}

TEST(Describe, LeavesRunningStatisticsOutsideTheContract) {
  NEED_TORCH();
  const auto d = (*reference())
                     ->describe(module("self.bn = nn.BatchNorm2d(3)", "return self.bn(x)",
                                       "torch.rand(2, 3, 4, 4)"),
                                "", {});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(names(*d), "x bn_weight bn_bias out ");
  EXPECT_TRUE(d->training);
  EXPECT_TRUE(contains(d->note, "bn.running_mean")) << d->note;
  const auto eval = (*reference())
                        ->describe(module("self.bn = nn.BatchNorm2d(3)\nself.eval()",
                                          "return self.bn(x)", "torch.rand(2, 3, 4, 4)"),
                                   "", {});
  ASSERT_TRUE(eval) << eval.error().text();
  EXPECT_EQ(names(*eval), "x bn_weight bn_bias bn_running_mean bn_running_var out ");
  EXPECT_FALSE(eval->training);
}

TEST(Describe, NamesBecomeDistinctIdentifiers) {
  NEED_TORCH();
  const auto d = (*reference())
                     ->describe(module("self.a_b = nn.Linear(2, 2, bias=False)\n"
                                       "self.a = nn.Module()\n"
                                       "self.a.b = nn.Linear(2, 2, bias=False)",
                                       "return self.a_b(half) + self.a.b(N)",
                                       "torch.rand(2, 2), torch.rand(2, N)", "N = 2\n", "half, N"),
                                "", {});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(names(*d), "half_ N_2 a_b_weight a_b_weight_2 out ");
}

TEST(Describe, MakesNoLargeInputs) {
  NEED_TORCH();
  const auto small = (*reference())->describe(module("", "return x", "torch.rand(2)"), "", {});
  ASSERT_TRUE(small);
  if (small->torch_version.starts_with("1.")) GTEST_SKIP() << "PyTorch " << small->torch_version;
  const std::string large = "torch.rand(1 << 16, 1 << 20)";  // 275 GB
  const auto relu = (*reference())->describe(module("", "return F.relu(x)", large), "", {});
  ASSERT_TRUE(relu) << relu.error().text();
  EXPECT_EQ(item(*relu, "out")->shape, (std::vector<std::int64_t>{1 << 16, 1 << 20}));
  EXPECT_DOUBLE_EQ(relu->intermediate_bytes, std::ldexp(1, 38));
  // A constructor that reads values, and layers with thousands of steps.
  const auto rates =
      (*reference())
          ->describe(module("self.rates = [r.item() for r in torch.linspace(0, 1, 4)]\n"
                            "self.l = nn.LSTM(1024, 512, 2, bidirectional=True)",
                            "out, (h, c) = self.l(x)\nreturn out * self.rates[3], h",
                            "torch.rand(4096, 4096, 1024)"),
                     "", {});
  ASSERT_TRUE(rates) << rates.error().text();
  EXPECT_EQ(item(*rates, "out_0")->shape, (std::vector<std::int64_t>{4096, 4096, 1024}));
  EXPECT_EQ(item(*rates, "out_1")->shape, (std::vector<std::int64_t>{4, 4096, 512}));
  // 2 directions, 2 layers of 4 gates: 512 x (1024 + 512) weights each.
  EXPECT_DOUBLE_EQ(rates->flops, 2.0 * 4096 * 4096 * 2 * 2 * 4 * 512 * (1024 + 512));
}

TEST(Describe, RefusesWithTheReason) {
  NEED_TORCH();
  const struct {
    const char* what;
    std::string source;
    const char* told;
  } rows[] = {
      {"syntax", "def (:\n", "SyntaxError"},
      {"no Model", "def get_inputs(): return []\ndef get_init_inputs(): return []\n",
       "does not define Model"},
      {"not a module",
       "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n",
       "is not a torch.nn.Module"},
      {"exit at import", "import sys\nsys.exit(3)\n", "SystemExit"},
      {"missing import", "import no_such_package_here\n", "no_such_package_here"},
      {"exception in forward", module("", "raise ValueError('no luck')", "torch.rand(2)"),
       "no luck"},
      {"wrong arguments", module("", "return x", "torch.rand(2), torch.rand(2)"),
       "forward does not take them"},
      {"complex", module("", "return torch.fft.fft(x)", "torch.rand(8)"), "complex64"},
      {"double", module("", "return x", "torch.rand(8, dtype=torch.float64)"), "float64"},
      {"empty", module("", "return x", "torch.rand(0, 8)"), "empty"},
      {"no tensor", module("", "return 3.0", "torch.rand(8)"), "of type float"},
      {"nothing", module("", "pass", "torch.rand(8)"), "no tensor"},
      {"random number",
       module("", "return x * s", "torch.rand(8), random.random()", "import random\n", "x, s"),
       "at random"},
      {"sparse", module("", "return x.to_dense()", "torch.eye(4).to_sparse()"), "dense"},
      {"lazy", module("self.l = nn.LazyLinear(3)", "return self.l(x)", "torch.rand(2, 4)"), "lazy"},
  };
  for (const auto& row : rows) {
    const auto d = (*reference())->describe(row.source, "", {});
    ASSERT_FALSE(d) << row.what;
    EXPECT_EQ(d.error().kind, ErrorKind::kTask) << row.what;
    EXPECT_TRUE(contains(d.error().message, row.told)) << row.what << ": " << d.error().text();
    EXPECT_FALSE(contains(d.error().message, "kernelpro_torch")) << d.error().text();
  }
}

TEST(Draw, IsRepeatableAndFollowsTheSeed) {
  NEED_TORCH();
  Computed m(module("self.l = nn.Linear(4, 4)", "return self.l(x) + e",
                    "torch.rand(5, 4), torch.from_numpy(np.random.rand(4).astype('float32'))",
                    "import numpy as np\n", "x, e"));
  ASSERT_EQ(m.error, "");
  m.draw(DrawKind::kGiven, 1);
  const auto x = m.in("x"), e = m.in("e"), w = m.in("l_weight");
  m.draw(DrawKind::kGiven, 2);
  EXPECT_NE(m.in("x"), x);
  EXPECT_NE(m.in("e"), e);
  EXPECT_EQ(m.in("l_weight"), w);  // as constructed, whatever the seed
  m.draw(DrawKind::kGiven, 1);
  EXPECT_EQ(m.in("x"), x);
  EXPECT_EQ(m.in("e"), e);
  EXPECT_EQ(m.error, "");
}

TEST(Draw, WeightsAreKernelBenchs) {
  NEED_TORCH();
  Computed m(module("self.w = nn.Parameter(torch.rand(3))\nself.e = nn.Parameter(seen)",
                    "return x * self.w + self.e", "torch.rand(3)",
                    "torch.manual_seed(42)\nseen = torch.rand(3)\n"));
  ASSERT_EQ(m.error, "");
  m.draw();
  EXPECT_EQ(m.in("w"), m.in("e"));  // both the first numbers under seed 42
}

TEST(Draw, CentresWhatNeverChangesSignAndKeepsStructure) {
  NEED_TORCH();
  Computed m(module("", "return x + t + s + k + i.sum()",
                    "torch.rand(64, 64), torch.tril(torch.rand(64, 64)), torch.randn(64, 64), "
                    "(torch.rand(64, 64) > 0.5).float(), torch.ones(2, dtype=torch.int64)",
                    "", "x, t, s, k, i"));
  ASSERT_EQ(m.error, "");
  m.draw(DrawKind::kGiven);
  const auto s = m.in("s"), k = m.in("k");
  EXPECT_TRUE(m.draw(DrawKind::kCentred));
  const auto x = m.in("x"), t = m.in("t");
  EXPECT_LT(*std::min_element(x.begin(), x.end()), -0.4F);
  EXPECT_GT(*std::max_element(x.begin(), x.end()), 0.4F);
  EXPECT_LT(*std::min_element(t.begin(), t.end()), -0.4F);
  EXPECT_EQ(t[1], 0.0F);  // above the diagonal
  EXPECT_EQ(t[64 * 10 + 60], 0.0F);
  EXPECT_EQ(m.in("s"), s);  // has both signs already
  EXPECT_EQ(m.in("k"), k);  // a mask
  Computed signs(module("", "return x", "torch.randn(64)"));
  EXPECT_FALSE(signs.draw(DrawKind::kCentred));
}

TEST(Draw, ScalesAndPerturbs) {
  NEED_TORCH();
  Computed m(module("self.n = nn.LayerNorm(8)\nself.l = nn.Linear(8, 8, bias=False)",
                    "return self.l(self.n(x))", "torch.rand(4, 8)"));
  ASSERT_EQ(m.error, "");
  m.draw();
  const auto x = m.in("x"), ones = m.in("n_weight"), l = m.in("l_weight");
  EXPECT_TRUE(m.draw(DrawKind::kScaled));
  EXPECT_FLOAT_EQ(m.in("x")[5], 64 * x[5]);
  EXPECT_TRUE(m.draw(DrawKind::kParameters));
  EXPECT_EQ(m.in("x"), x);
  EXPECT_EQ(ones, std::vector<float>(8, 1.0F));
  for (const float w : m.in("n_weight")) EXPECT_TRUE(w != 1.0F && w > 0.7F && w < 1.3F) << w;
  for (const float b : m.in("n_bias")) EXPECT_TRUE(b != 0.0F && std::fabs(b) < 0.2F) << b;
  EXPECT_EQ(m.in("l_weight"), l);  // random already
  Computed none(
      module("self.l = nn.Linear(8, 8, bias=False)", "return self.l(x)", "torch.rand(8)"));
  EXPECT_FALSE(none.draw(DrawKind::kParameters));
}

// KernelBench: torch.manual_seed(42); seeds = [torch.randint(0, 2**32 - 1, (1,)).item() ...];
// torch.manual_seed(seeds[trial]); get_inputs(). The file repeats that.
TEST(Draw, KernelBenchTrials) {
  NEED_TORCH();
  Computed m(module("self.want = nn.Parameter(want)", "return x - self.want", "torch.rand(16)",
                    "torch.manual_seed(42)\n"
                    "seeds = [torch.randint(0, 2**32 - 1, (1,)).item() for _ in range(5)]\n"
                    "torch.manual_seed(seeds[3])\nwant = torch.rand(16)\n"));
  ASSERT_EQ(m.error, "");
  EXPECT_TRUE(m.draw(DrawKind::kKernelBench, 3));
  EXPECT_EQ(m.in("x"), m.in("want"));
  m.draw(DrawKind::kKernelBench, 2);
  EXPECT_NE(m.in("x"), m.in("want"));
  EXPECT_EQ(m.error, "");
}

TEST(Compute, Float64IsMoreExactThanStrict) {
  NEED_TORCH();
  Computed m(module("self.l = nn.Linear(64, 1)", "return self.l(x)", "torch.rand(3, 64)"));
  ASSERT_EQ(m.error, "");
  m.draw();
  EXPECT_EQ(m.compute(Numerics::kFloat64, true), "") << m.error;
  const auto x = m.in("x"), w = m.in("l_weight"), b = m.in("l_bias");
  const auto wide = m.out();
  m.compute(Numerics::kStrict);
  const auto strict = m.out();
  ASSERT_EQ(m.error, "");
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = b[0];
    for (std::size_t i = 0; i < 64; ++i) {
      sum += static_cast<double>(x[row * 64 + i]) * static_cast<double>(w[i]);
    }
    EXPECT_NEAR(wide[row], sum, 1e-14);
    EXPECT_NEAR(strict[row], sum, 1e-5);
    EXPECT_EQ(strict[row], static_cast<double>(static_cast<float>(strict[row])));
  }
  EXPECT_NE(wide, strict);
}

TEST(Compute, UsesWhatLiesInTheBuffers) {
  NEED_TORCH();
  Computed m(module("self.w = nn.Parameter(torch.ones(3))\nself.l = [torch.ones(3)]",
                    "return x * self.w + self.l[0]", "torch.rand(3)"));
  ASSERT_EQ(m.error, "");
  m.draw();
  m.set->set<float>("x", {1, 2, 3});
  m.set->set<float>("w", {10, 20, 30});
  m.set->set<float>("l_0", {0.5, 0.25, 0.125});
  EXPECT_EQ(m.compute(), "") << m.error;
  EXPECT_EQ(m.out(), (std::vector<double>{10.5, 40.25, 90.125}));
  m.draw();  // and draws them as constructed again
  EXPECT_EQ(m.in("w"), (std::vector<float>{1, 1, 1}));
}

TEST(Compute, ForgetsWhatForwardChanged) {
  NEED_TORCH();
  Computed m(module(
      "self.register_buffer('calls', torch.zeros(2))\n"
      "self.bn = nn.BatchNorm1d(2, momentum=None)",
      "self.calls += 1\nx.mul_(2)\nx += self.calls + self.bn(x)\nreturn x", "torch.rand(4, 2)"));
  ASSERT_EQ(m.error, "");
  EXPECT_TRUE(contains(m.description.note, "changes its input x in place")) << m.description.note;
  EXPECT_TRUE(contains(m.description.note, "changes calls in place")) << m.description.note;
  m.draw();
  const auto x = m.in("x");
  EXPECT_EQ(m.compute(Numerics::kStrict, true), "") << m.error;
  const auto first = m.out();
  EXPECT_EQ(m.in("x"), x);
  EXPECT_EQ(m.in("calls"), (std::vector<float>{0, 0}));
  EXPECT_EQ(m.compute(Numerics::kStrict, true), "") << m.error;
  EXPECT_EQ(m.out(), first);
}

TEST(Compute, HandlesManyShapesOfModules) {
  NEED_TORCH();
  const std::string sources[] = {
      module("self.c = nn.ConvTranspose2d(3, 4, 3, stride=2)", "return self.c(x)",
             "torch.rand(2, 3, 8, 8)"),
      module("self.bn = nn.BatchNorm2d(3)", "return self.bn(x)", "torch.rand(2, 3, 4, 4)"),
      module("self.l = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True)",
             "out, (h, c) = self.l(x, state)\nreturn out[:, -1], c",
             "torch.rand(2, 3, 4), (torch.rand(4, 2, 5), torch.rand(4, 2, 5))", "", "x, state"),
      module("", "return F.cross_entropy(x, t)", "torch.rand(4, 6), torch.randint(0, 6, (4,))", "",
             "x, t"),
      module("self.a = nn.MultiheadAttention(8, 2)\nself.eval()", "return self.a(x, x, x)[0]",
             "torch.rand(3, 2, 8)"),
      module("self.d = nn.Dropout(0.0)", "return self.d(x).t()", "torch.rand(3, 5).t()"),
      module("self.c = nn.utils.weight_norm(nn.Linear(4, 4))", "return self.c(x)", "torch.rand(4)"),
      module("", "h = torch.zeros(4)\nreturn torch.maximum(x, h)", "torch.rand(4)"),
      module("",
             "with torch.enable_grad():\n    y = x.detach().requires_grad_()\n"
             "    return torch.autograd.grad((y ** 3).sum(), y)[0]",
             "torch.rand(4)"),
      module("print('to the channel?', flush=True)", "import os\nos.write(1, b'raw')\nreturn x + 1",
             "torch.rand(4)"),
  };
  for (const std::string& source : sources) {
    Computed m(source);
    ASSERT_EQ(m.error, "") << source;
    m.draw();
    EXPECT_EQ(m.compute(Numerics::kFloat64, true), "") << m.error << source;
    const auto wide = m.out(m.task.tensors.back().name);
    m.compute(Numerics::kStrict);
    EXPECT_EQ(m.error, "") << source;
    const auto strict = m.out(m.task.tensors.back().name);
    ASSERT_EQ(wide.size(), strict.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      EXPECT_NEAR(wide[i], strict[i], 1e-5 * (1 + std::fabs(wide[i]))) << source;
    }
  }
}

TEST(Compute, BeginsEveryCallAsConstructed) {
  NEED_TORCH();
  Computed m(module("self.h = torch.ones(4)\nself.n = 0",
                    "self.n += 1\nself.h = self.h.to(x.device) * 2 + x\nreturn self.h * self.n",
                    "torch.rand(4)"));
  ASSERT_EQ(m.error, "");
  EXPECT_TRUE(contains(m.description.note, "forward keeps h, n")) << m.description.note;
  m.draw();
  EXPECT_EQ(m.compute(Numerics::kFloat64, true), "") << m.error;
  const auto x = m.in("x");
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(m.out()[i], 2.0 + static_cast<double>(x[i]));
}

TEST(Compute, NamesWhatIsRandom) {
  NEED_TORCH();
  const struct {
    std::string source;
    const char* told;
  } rows[] = {
      {module("self.drop = nn.Dropout(0.5)", "return self.drop(x)", "torch.rand(64)"),
       "drop (Dropout)"},
      {module("", "return x + torch.randn(64)", "torch.rand(64)"), "forward (Model): randn"},
      {module("self.l = nn.LSTM(4, 5)",
              "s = torch.randn(1, 2, 5), torch.randn(1, 2, 5)\nreturn self.l(x, s)[0]",
              "torch.rand(3, 2, 4)"),
       "randn"},
      {module("", "calls.append(1)\nreturn x * len(calls)", "torch.rand(4)", "calls = []\n"),
       "keeps state"},
      {module("", "return torch.bernoulli(x) > 0", "torch.rand(4096)"), "bernoulli"},
  };
  for (const auto& row : rows) {
    Computed m(row.source);
    ASSERT_EQ(m.error, "") << row.source;
    m.draw();
    EXPECT_TRUE(contains(m.compute(Numerics::kStrict, true), row.told))
        << m.compute(Numerics::kStrict, true) << m.error << row.source;
  }
}

TEST(Compute, HalfPrecisionIsCast) {
  NEED_TORCH();
  Computed m(module("self.w = nn.Parameter(torch.rand(8))\nself.bn = nn.BatchNorm1d(8)",
                    "return x + self.w", "torch.rand(4, 8)"));
  ASSERT_EQ(m.error, "");
  for (Tensor& tensor : m.task.tensors) tensor.dtype = DType::kBf16;
  m.task.precision = Precision::kBf16;
  m.set = std::make_unique<TestSet>(m.task, m.c());
  ASSERT_TRUE((*reference())->attach(m.task, m.c(), 0, m.set->buffers()));
  m.draw();
  EXPECT_EQ(m.compute(Numerics::kStrict), "") << m.error;
  const auto x = m.set->values<std::uint16_t>("x");
  const auto out = m.out();
  const auto w = m.set->values<std::uint16_t>("w");
  const auto to_float = [](std::uint16_t bits) {
    const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &word, sizeof value);
    return static_cast<double>(value);
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_NEAR(out[i], to_float(x[i]) + to_float(w[i % 8]), 0.01);
  }
}

TEST(Compute, TakesMoreBuffersThanOneFrameCarries) {
  NEED_TORCH();
  Computed m(
      module("self.p = nn.ParameterList([nn.Parameter(torch.full((2,), float(i))) "
             "for i in range(150)])",
             "return x + sum(self.p)", "torch.rand(2)"));
  ASSERT_EQ(m.error, "");
  ASSERT_EQ(m.set->buffers().size(), 152u);
  m.draw();
  EXPECT_EQ(m.compute(), "") << m.error;
  const auto x = m.in("x");
  EXPECT_EQ(m.out(), (std::vector<double>{x[0] + 11175.0, x[1] + 11175.0}));
  EXPECT_TRUE((*reference())->detach(m.c()));
  EXPECT_FALSE((*reference())->draw(m.c(), 0, 1, DrawKind::kGiven));
}

// A file that takes its size from another file, whose changes do not show in its own text.
TEST(Process, ADescriptionThatIsKeptMustStillBeTrue) {
  NEED_TORCH();
  const TempDir folder;
  const std::string size = join(folder.path(), "size.txt");
  ASSERT_TRUE(write_file(size, "3"));
  const std::string source =
      module("", "return x + 1", "torch.rand(SIZE)", "SIZE = int(open('" + size + "').read())\n");
  // The size that a new process reports, and whether it is confirmed on use.
  const auto told = [&](bool holds) {
    auto own = ModuleReference::start(cpu_settings());
    const auto d = (*own)->describe(source, "", {});
    EXPECT_TRUE(d) << d.error().text();
    const Task task = task_of(*d, source);
    const auto attached = (*own)->attach(task, task.cases[0], 0, {});
    // Without buffers it always fails, but for another reason.
    const bool denied = !attached && contains(attached.error().next, "the new description");
    EXPECT_EQ(holds, !denied);
    return d->items[0].shape[0];
  };
  EXPECT_EQ(told(true), 3);
  EXPECT_EQ(told(true), 3);
  ASSERT_TRUE(write_file(size, "5"));
  EXPECT_EQ(told(false), 3);
  EXPECT_EQ(told(true), 5);
}

TEST(Process, AnEndlessModuleIsEnded) {
  NEED_TORCH();
  ReferenceSettings settings = cpu_settings();
  settings.timeout_s = 1;
  auto own = ModuleReference::start(settings);
  ASSERT_TRUE(own);
  const auto d = (*own)->describe("while True: pass\n", "", {});
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().kind, ErrorKind::kTask);
  EXPECT_TRUE(contains(d.error().message, "needed more than 1 s")) << d.error().text();
  EXPECT_FALSE((*own)->describe(module("", "return x", "torch.rand(2)"), "", {}));
}

TEST(Process, ADyingModuleIsToldWithWhatItSaid) {
  NEED_TORCH();
  auto own = ModuleReference::start(cpu_settings());
  ASSERT_TRUE(own);
  const auto d =
      (*own)->describe("print('last words', flush=True)\nimport os\nos._exit(5)\n", "", {});
  ASSERT_FALSE(d);
  EXPECT_TRUE(contains(d.error().message, "last words")) << d.error().text();
}

TEST(Process, MissingPiecesAreNamed) {
  ReferenceSettings settings = cpu_settings();
  settings.python = "/no/such/python";
  const auto none = ModuleReference::start(settings);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(none.error().message, "/no/such/python"));
  settings.python = "/bin/false";
  const auto broken = ModuleReference::start(settings);
  ASSERT_FALSE(broken);
  EXPECT_TRUE(contains(broken.error().message, "does not run")) << broken.error().text();
}

}  // namespace
}  // namespace kernelpro
