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

// A module that is described, attached, drawn and computed.
struct Computed {
  explicit Computed(const std::string& text) : source(text) {
    auto described = (*cpu_reference())->describe(source, "", {});
    if (!described) {
      error = described.error().text();
      return;
    }
    description = *described;
    task = task_of(description, source);
    set = std::make_unique<TestSet>(task, c());
    const auto attached = (*cpu_reference())->attach(task, c(), 0, set->buffers());
    if (!attached) error = attached.error().text();
  }
  const Case& c() const { return task.cases[0]; }
  bool draw(DrawKind kind = DrawKind::kGiven, std::uint64_t seed = 7) {
    const auto facts = (*cpu_reference())->draw(c(), 0, seed, kind);
    if (!facts) error = facts.error().text();
    return facts && facts->changed;
  }
  std::string compute(Numerics numerics = Numerics::kFloat64, bool twice = false) {
    const auto facts = (*cpu_reference())->compute(c(), 0, numerics, twice);
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

TEST(Draw, IsRepeatableAndFollowsTheSeed) {
  NEED_TORCH();
  Computed m(
      module_source("self.l = nn.Linear(4, 4)", "return self.l(x) + e",
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
  Computed m(module_source("self.w = nn.Parameter(torch.rand(3))\nself.e = nn.Parameter(seen)",
                           "return x * self.w + self.e", "torch.rand(3)",
                           "torch.manual_seed(42)\nseen = torch.rand(3)\n"));
  ASSERT_EQ(m.error, "");
  m.draw();
  EXPECT_EQ(m.in("w"), m.in("e"));  // both the first numbers under seed 42
}

TEST(Draw, CentresWhatNeverChangesSignAndKeepsStructure) {
  NEED_TORCH();
  Computed m(
      module_source("", "return x + t + s + k + i.sum()",
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
  Computed signs(module_source("", "return x", "torch.randn(64)"));
  EXPECT_FALSE(signs.draw(DrawKind::kCentred));
}

TEST(Draw, FillsRowsAndColumnsOfZeros) {
  NEED_TORCH();
  Computed m(module_source("", "return c.sum() + r.sum() + t.sum() + u.sum() + k.sum()",
                           "torch.cat([torch.rand(64, 48), torch.zeros(64, 16)], 1), "
                           "torch.cat([torch.zeros(40, 64), torch.rand(24, 64)]), "
                           "torch.tril(torch.rand(64, 64)), torch.triu(torch.rand(64, 64), 1), "
                           "torch.cat([torch.ones(32, 64), torch.zeros(32, 64)])",
                           "", "c, r, t, u, k"));
  ASSERT_EQ(m.error, "");
  m.draw();
  const auto c = m.in("c"), t = m.in("t"), u = m.in("u"), k = m.in("k");
  EXPECT_TRUE(m.draw(DrawKind::kFilled));
  for (const char* filled : {"c", "r"}) {
    const auto values = m.in(filled);
    EXPECT_LT(std::count(values.begin(), values.end(), 0.0F), 3) << filled;
  }
  EXPECT_EQ(m.in("c")[64 * 5 + 47], c[64 * 5 + 47]);  // the others stay
  EXPECT_EQ(m.in("t"), t);                            // triangles
  EXPECT_EQ(m.in("u"), u);
  EXPECT_EQ(m.in("k"), k);  // a mask
  Computed dense(module_source("", "return x", "torch.randn(64, 64)"));
  EXPECT_FALSE(dense.draw(DrawKind::kFilled));
}

TEST(Draw, ScalesAndPerturbs) {
  NEED_TORCH();
  Computed m(module_source("self.n = nn.LayerNorm(8)\nself.l = nn.Linear(8, 8, bias=False)",
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
      module_source("self.l = nn.Linear(8, 8, bias=False)", "return self.l(x)", "torch.rand(8)"));
  EXPECT_FALSE(none.draw(DrawKind::kParameters));
}

// KernelBench: torch.manual_seed(42); seeds = [torch.randint(0, 2**32 - 1, (1,)).item() ...];
// torch.manual_seed(seeds[trial]); get_inputs(). The file repeats that.
TEST(Draw, KernelBenchTrials) {
  NEED_TORCH();
  Computed m(module_source("self.want = nn.Parameter(want)", "return x - self.want",
                           "torch.rand(16)",
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
  Computed m(module_source("self.l = nn.Linear(64, 1)", "return self.l(x)", "torch.rand(3, 64)"));
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
  Computed m(module_source("self.w = nn.Parameter(torch.ones(3))\nself.l = [torch.ones(3)]",
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
  Computed m(module_source(
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
      module_source("self.c = nn.ConvTranspose2d(3, 4, 3, stride=2)", "return self.c(x)",
                    "torch.rand(2, 3, 8, 8)"),
      module_source("self.bn = nn.BatchNorm2d(3)", "return self.bn(x)", "torch.rand(2, 3, 4, 4)"),
      module_source("self.l = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True)",
                    "out, (h, c) = self.l(x, state)\nreturn out[:, -1], c",
                    "torch.rand(2, 3, 4), (torch.rand(4, 2, 5), torch.rand(4, 2, 5))", "",
                    "x, state"),
      module_source("", "return F.cross_entropy(x, t)",
                    "torch.rand(4, 6), torch.randint(0, 6, (4,))", "", "x, t"),
      module_source("self.a = nn.MultiheadAttention(8, 2)\nself.eval()",
                    "return self.a(x, x, x)[0]", "torch.rand(3, 2, 8)"),
      module_source("self.d = nn.Dropout(0.0)", "return self.d(x).t()", "torch.rand(3, 5).t()"),
      module_source("self.c = nn.utils.weight_norm(nn.Linear(4, 4))", "return self.c(x)",
                    "torch.rand(4)"),
      module_source("", "h = torch.zeros(4)\nreturn torch.maximum(x, h)", "torch.rand(4)"),
      module_source("",
                    "with torch.enable_grad():\n    y = x.detach().requires_grad_()\n"
                    "    return torch.autograd.grad((y ** 3).sum(), y)[0]",
                    "torch.rand(4)"),
      module_source("print('to the channel?', flush=True)",
                    "import os\nos.write(1, b'raw')\nreturn x + 1", "torch.rand(4)"),
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
  Computed m(
      module_source("self.h = torch.ones(4)\nself.n = 0",
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
      {module_source("self.drop = nn.Dropout(0.5)", "return self.drop(x)", "torch.rand(64)"),
       "drop (Dropout)"},
      {module_source("", "return x + torch.randn(64)", "torch.rand(64)"), "forward (Model): randn"},
      {module_source("self.l = nn.LSTM(4, 5)",
                     "s = torch.randn(1, 2, 5), torch.randn(1, 2, 5)\nreturn self.l(x, s)[0]",
                     "torch.rand(3, 2, 4)"),
       "randn"},
      {module_source("", "calls.append(1)\nreturn x * len(calls)", "torch.rand(4)", "calls = []\n"),
       "keeps state"},
      {module_source("", "return torch.bernoulli(x) > 0", "torch.rand(4096)"), "bernoulli"},
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
  Computed m(module_source("self.w = nn.Parameter(torch.rand(8))\nself.bn = nn.BatchNorm1d(8)",
                           "return x + self.w", "torch.rand(4, 8)"));
  ASSERT_EQ(m.error, "");
  for (Tensor& tensor : m.task.tensors) tensor.dtype = DType::kBf16;
  m.task.precision = Precision::kBf16;
  m.set = std::make_unique<TestSet>(m.task, m.c());
  ASSERT_TRUE((*cpu_reference())->attach(m.task, m.c(), 0, m.set->buffers()));
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
      module_source("self.p = nn.ParameterList([nn.Parameter(torch.full((2,), float(i))) "
                    "for i in range(150)])",
                    "return x + sum(self.p)", "torch.rand(2)"));
  ASSERT_EQ(m.error, "");
  ASSERT_EQ(m.set->buffers().size(), 152u);
  m.draw();
  EXPECT_EQ(m.compute(), "") << m.error;
  const auto x = m.in("x");
  EXPECT_EQ(m.out(), (std::vector<double>{x[0] + 11175.0, x[1] + 11175.0}));
  EXPECT_TRUE((*cpu_reference())->detach(m.c()));
  EXPECT_FALSE((*cpu_reference())->draw(m.c(), 0, 1, DrawKind::kGiven));
}

// A file that takes its size from another file, whose changes do not show in its own text.
TEST(Process, ADescriptionThatIsKeptMustStillBeTrue) {
  NEED_TORCH();
  const TempDir folder;
  const std::string size = join(folder.path(), "size.txt");
  ASSERT_TRUE(write_file(size, "3"));
  const std::string source = module_source("", "return x + 1", "torch.rand(SIZE)",
                                           "SIZE = int(open('" + size + "').read())\n");
  // The size that a new process reports, and whether it is confirmed on use.
  const auto told = [&](bool holds) {
    ReferenceSettings settings = cpu_settings();
    settings.folder = folder.path();
    auto own = ModuleReference::start(settings);
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
  EXPECT_FALSE((*own)->describe(module_source("", "return x", "torch.rand(2)"), "", {}));
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
