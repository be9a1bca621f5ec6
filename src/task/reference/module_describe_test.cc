// SPDX-License-Identifier: Apache-2.0
// What real Python with real PyTorch reports about modules: skipped where there is none.
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "task/reference/module_reference.h"
#include "task/reference/module_testing.h"

namespace kernelpro {
namespace {

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
  const auto d =
      (*cpu_reference())
          ->describe(module_source("self.conv = nn.Conv2d(C, 4, 3)\n"
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
      module_source("", "return x.sum(dim=1)", "torch.rand(rows, half, 2)",
                    "rows: int = 4 * 1024\ncols = -(-8)\na, b = 3, 5\nhalf = cols // 2\n");
  const auto d = (*cpu_reference())->describe(source, "", {{"rows", 6}, {"cols", 20}, {"b", 9}});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(item(*d, "x")->shape, (std::vector<std::int64_t>{6, 10, 2}));
  EXPECT_EQ(d->dims,
            (std::map<std::string, std::int64_t>{{"rows", 6}, {"cols", 20}, {"a", 3}, {"b", 9}}));
  const auto unknown = (*cpu_reference())->describe(source, "", {{"half", 3}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(contains(unknown.error().text(), "half")) << unknown.error().text();
}

TEST(Describe, FlattensArgumentsAndResults) {
  NEED_TORCH();
  const auto d =
      (*cpu_reference())
          ->describe(module_source("", "return {'sum': pair[0] + pair[1]['b'], 'all': (x, n * x)}",
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
      (*cpu_reference())
          ->describe(
              module_source("self.a = nn.Embedding(10, 4)\nself.b = nn.Linear(4, 10, bias=False)\n"
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
  const auto d = (*cpu_reference())
                     ->describe(module_source("self.bn = nn.BatchNorm2d(3)", "return self.bn(x)",
                                              "torch.rand(2, 3, 4, 4)"),
                                "", {});
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(names(*d), "x bn_weight bn_bias out ");
  EXPECT_TRUE(d->training);
  EXPECT_TRUE(contains(d->note, "bn.running_mean")) << d->note;
  const auto eval = (*cpu_reference())
                        ->describe(module_source("self.bn = nn.BatchNorm2d(3)\nself.eval()",
                                                 "return self.bn(x)", "torch.rand(2, 3, 4, 4)"),
                                   "", {});
  ASSERT_TRUE(eval) << eval.error().text();
  EXPECT_EQ(names(*eval), "x bn_weight bn_bias bn_running_mean bn_running_var out ");
  EXPECT_FALSE(eval->training);
}

TEST(Describe, NamesBecomeDistinctIdentifiers) {
  NEED_TORCH();
  const auto d =
      (*cpu_reference())
          ->describe(module_source("self.a_b = nn.Linear(2, 2, bias=False)\n"
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
  const auto small =
      (*cpu_reference())->describe(module_source("", "return x", "torch.rand(2)"), "", {});
  ASSERT_TRUE(small);
  if (small->torch_version.starts_with("1.")) GTEST_SKIP() << "PyTorch " << small->torch_version;
  const std::string large = "torch.rand(1 << 16, 1 << 20)";  // 275 GB
  const auto relu =
      (*cpu_reference())->describe(module_source("", "return F.relu(x)", large), "", {});
  ASSERT_TRUE(relu) << relu.error().text();
  EXPECT_EQ(item(*relu, "out")->shape, (std::vector<std::int64_t>{1 << 16, 1 << 20}));
  EXPECT_DOUBLE_EQ(relu->intermediate_bytes, std::ldexp(1, 38));
  // A constructor that reads values, and layers with thousands of steps.
  const auto rates =
      (*cpu_reference())
          ->describe(module_source("self.rates = [r.item() for r in torch.linspace(0, 1, 4)]\n"
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
      {"exception in forward", module_source("", "raise ValueError('no luck')", "torch.rand(2)"),
       "no luck"},
      {"wrong arguments", module_source("", "return x", "torch.rand(2), torch.rand(2)"),
       "forward does not take them"},
      {"complex", module_source("", "return torch.fft.fft(x)", "torch.rand(8)"), "complex64"},
      {"double", module_source("", "return x", "torch.rand(8, dtype=torch.float64)"), "float64"},
      {"empty", module_source("", "return x", "torch.rand(0, 8)"), "empty"},
      {"no tensor", module_source("", "return 3.0", "torch.rand(8)"), "of type float"},
      {"nothing", module_source("", "pass", "torch.rand(8)"), "no tensor"},
      {"random number",
       module_source("", "return x * s", "torch.rand(8), random.random()", "import random\n",
                     "x, s"),
       "at random"},
      {"sparse", module_source("", "return x.to_dense()", "torch.eye(4).to_sparse()"), "dense"},
      {"lazy", module_source("self.l = nn.LazyLinear(3)", "return self.l(x)", "torch.rand(2, 4)"),
       "lazy"},
  };
  for (const auto& row : rows) {
    const auto d = (*cpu_reference())->describe(row.source, "", {});
    ASSERT_FALSE(d) << row.what;
    EXPECT_EQ(d.error().kind, ErrorKind::kTask) << row.what;
    EXPECT_TRUE(contains(d.error().message, row.told)) << row.what << ": " << d.error().text();
    EXPECT_FALSE(contains(d.error().message, "kernelpro_torch")) << d.error().text();
  }
}

}  // namespace
}  // namespace kernelpro
