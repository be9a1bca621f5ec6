// SPDX-License-Identifier: Apache-2.0
// The judge's comparisons, with its own kernels run on the host.
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/judge_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/task/deviation.h"
#include "measure/worker/testing/judge_cases.h"

namespace kernelpro::testing {
namespace {

TEST_F(JudgeCases, DrawTheInputsThatTheHostDraws) {
  task.name = "all";
  int n = 0;
  for (const DType dtype :
       {DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt32, DType::kInt64, DType::kBool}) {
    for (const Init& init :
         {Init{Init::Kind::kNormal, 0.5, 3}, Init{Init::Kind::kUniform, -1, 2},
          Init{Init::Kind::kIntegers, -5, 9}, Init{Init::Kind::kBernoulli, 0.25, 0},
          Init{Init::Kind::kConstant, 3, 0}}) {
      task.tensors.push_back({"t" + std::to_string(n++), Role::kInput, dtype, {"33"}, init, 0});
    }
  }
  task.cases = {Case{"all", {}, false, {}}};
  auto made = make(1);
  ASSERT_TRUE(made) << made.error().text();
  ASSERT_TRUE(made->draw(0, key_of(12345), specs()));
  for (int i = 0; i < n; ++i) {
    const Tensor& t = task.tensors[static_cast<std::size_t>(i)];
    const auto drawn = made->fetch(0, i, false);
    ASSERT_TRUE(drawn);
    std::string expected(drawn->size(), '\0');
    draw_inputs(t, i, key_of(12345), 0, 33, expected.data());
    EXPECT_EQ(*drawn, expected) << dtype_name(t.dtype) << " " << init_name(t.init.kind);
  }
}

TEST_F(JudgeCases, PassRightOutputsAndNoOthers) {
  open();
  ASSERT_TRUE(judge->poison({{0, 5}, {1, 6}}, true));
  for (const OutputComparison& c : found(0).outputs) {
    EXPECT_EQ(c.bad, c.unwritten) << "nothing was written";
    EXPECT_GT(c.bad, 900u);
  }
  look_at(0);
  compute();
  for (const OutputComparison& c : found(0).outputs) EXPECT_EQ(c.bad, 0u);
  EXPECT_TRUE(found(0).intrusions.empty());
  EXPECT_GT(found(1).outputs[0].bad, 900u) << "the other set is still empty";
  data<float>(kY)[17] = NAN;
  data<float>(kY)[1000] += 1;
  data<bool>(kB)[3] = !data<bool>(kB)[3];
  const SetFindings wrong = found(0);
  EXPECT_EQ(wrong.outputs[0].bad, 2u);
  EXPECT_EQ(wrong.outputs[0].not_a_number, 1u);
  EXPECT_EQ(wrong.outputs[0].first, 17u);
  EXPECT_EQ(wrong.outputs[0].last, 1000u);
  EXPECT_TRUE(std::isinf(wrong.outputs[0].worst));
  EXPECT_EQ(wrong.outputs[1].bad, 1u);
  EXPECT_EQ(wrong.outputs[1].first, 3u);
}

// As on the host, whether a group is taken at once or in parts.
TEST_F(JudgeCases, AverageErrorsAlongEveryAxis) {
  constexpr int kMany = 1 << 14;
  task.name = "many";
  task.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {Init::Kind::kNormal, 1, 2}, 0},
                  {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
  task.cases = {Case{"many", {{"N", kMany}}, true, {}}};
  fake::define("reference", {{8, 8}, [](fake::Launch& launch) {
                               const float* x = launch.memory<float>(0, kMany);
                               double* y = launch.memory<double>(1, kMany);
                               for (int i = 0; y != nullptr && i < kMany; ++i) y[i] = 2 * x[i];
                             }});
  auto made = make(1);
  ASSERT_TRUE(made) << made.error().text();
  judge = std::make_unique<JudgeCase>(std::move(*made));
  ASSERT_TRUE(judge->draw(0, key_of(7), specs()));
  ASSERT_TRUE(judge->run_reference(0, fake::image({"reference"}),
                                   in_a_row({kernel("reference", {tensor(0), tensor(1)})}), true));
  ASSERT_TRUE(judge->seal(0, true));
  look_at(0);
  float* y = data<float>(1);
  for (int i = 0; i < kMany; ++i) {
    y[i] = 2 * data<float>(0)[i] * (1 + 1e-3f * static_cast<float>(i % 13 + i % 7 - 8));
  }
  const auto results = judge->fetch(0, 1, true);
  ASSERT_TRUE(results);
  Expected expected;
  expected.values.resize(kMany);
  std::memcpy(expected.values.data(), results->data(), results->size());
  const std::vector<double> got(y, y + kMany);
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{16, 8, 128},
                                                 {2, 1024, 8},
                                                 {2, 128, 64},
                                                 {1024, 16},
                                                 {8, 2048},
                                                 {4, 16, 16, 16},
                                                 {1024, 1, 16},
                                                 {16384}}) {
    const auto all = judge->deviations(0, {shape});
    ASSERT_TRUE(all) << all.error().text();
    const Deviation wanted = deviation(got, expected, shape);
    ASSERT_EQ((*all)[0].means.size(), wanted.means.size());
    for (std::size_t k = 0; k < wanted.means.size(); ++k) {
      EXPECT_NEAR((*all)[0].means[k] / wanted.means[k], 1, 1e-6) << shape[0] << ", mean " << k;
    }
  }
}

// Results of another set are wrong, however right they were there.
TEST_F(JudgeCases, TellSetsApart) {
  open();
  look_at(0);
  compute();
  const std::string right(data(kY), 4 * kToyElements);
  EXPECT_EQ(found(0, false).outputs[0].bad, 0u);
  look_at(1);
  std::copy(right.begin(), right.end(), data(kY));
  EXPECT_GT(found(1, false).outputs[0].bad, 900u);
}

TEST_F(JudgeCases, CompareOnceWhatCameRightBefore) {
  open();
  look_at(0);
  compute();
  EXPECT_EQ(found(0).outputs[0].bad, 0u);
  fake::clear_log();
  const double worst = found(0).outputs[0].worst;
  EXPECT_EQ(count_log("launch compare"), 0);
  data<float>(kY)[3] = std::nextafter(data<float>(kY)[3], 1e9f);
  EXPECT_GT(found(0).outputs[0].worst, worst) << "one bit is another content";
  EXPECT_EQ(count_log("launch compare"), 2);
  // Another rule or another reference is another question.
  judge->set_tolerances({0, 0, 0, 0});
  EXPECT_EQ(found(0).outputs[0].bad, 1u);
  ASSERT_TRUE(judge->seal(0, true));
  EXPECT_EQ(found(0).outputs[0].bad, 1u);
}

// Random errors of all sizes: the device's verdict is the host's.
TEST_F(JudgeCases, JudgeAsTheHostDoes) {
  std::mt19937 random(7);
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16}) {
    for (const Policy policy : {Policy::kContract, Policy::kKernelBench}) {
      view.reset();
      judge.reset();
      open(dtype, 1, 0, policy);
      look_at(0);
      const auto expected_bytes = judge->fetch(0, kY, true);
      ASSERT_TRUE(expected_bytes);
      const Shaped y = shaped_tensors(task, task.cases[0])[kY];
      const Expected expected =
          make_expected(y, expected_bytes->data(), rule_for(task, *y.tensor, policy), true);
      for (int round = 0; round < 20; ++round) {
        compute();
        const int errors = std::uniform_int_distribution(0, 40)(random);
        for (int k = 0; k < errors; ++k) {
          const auto i = std::uniform_int_distribution<std::size_t>(0, kToyElements - 1)(random);
          const auto now =
              static_cast<float>(element_as_double(dtype, data(kY), static_cast<std::int64_t>(i)));
          const float size = std::pow(10.f, std::uniform_real_distribution(-8.f, 1.f)(random));
          const float changed = k == 7 ? NAN : k == 8 ? INFINITY : now * (1 + size) + size;
          store(dtype, data(kY), i, changed);
        }
        const Comparison host = compare_output(y, data(kY), expected);
        const OutputComparison device = found(0, false).outputs[0];
        EXPECT_EQ(device.bad, static_cast<std::uint64_t>(host.wrong));
        if (host.wrong > 0) {
          EXPECT_EQ(device.first, static_cast<std::uint64_t>(host.first));
        }
        if (std::isfinite(host.worst)) {
          EXPECT_NEAR(device.worst, host.worst, 1e-6 * (1 + host.worst));
        }
      }
    }
  }
}

TEST_F(JudgeCases, ExplainAFailure) {
  open();
  look_at(0);
  compute();
  data<float>(kY)[5] = 99;
  std::vector<unsigned char> bad;
  std::vector<double> got, expected;
  ASSERT_TRUE(judge->window(0, kY, 4, 3, &bad, &got, &expected));
  EXPECT_EQ(bad, (std::vector<unsigned char>{0, 1, 0}));
  EXPECT_EQ(got[1], 99);
  EXPECT_EQ(got[0], expected[0]);
  EXPECT_EQ(expected[1], 2 * data<float>(kX)[5]);
  ASSERT_TRUE(judge->window(0, kY, kToyElements - 2, 100, &bad, &got, &expected));
  EXPECT_EQ(bad.size(), 2u);
  ASSERT_TRUE(judge->window(0, kY, 1u << 30, 100, &bad, &got, &expected));
  EXPECT_TRUE(bad.empty());
}

// Every byte beside a tensor, up to the end of its mapping, on both sides.
TEST_F(JudgeCases, FindEveryWriteBesideATensor) {
  open();
  ASSERT_TRUE(judge->poison({{0, 1}, {1, 2}}, true));
  look_at(0);
  compute();
  ASSERT_TRUE(found(0).intrusions.empty());
  for (const int slot : {kX, kP, kY, kB, kWorkspace}) {
    const AddressLayout::Slot& s = judge->layout().slots[static_cast<std::size_t>(slot)];
    const std::uint64_t after = s.mapping + s.mapping_bytes - s.address - s.bytes;
    std::vector<std::int64_t> places = {-1, -4, -100,
                                        -static_cast<std::int64_t>(s.address - s.mapping)};
    // Past an input's last, partly used word there is poison.
    const std::uint64_t first = slot <= kP ? (4 - s.bytes % 4) % 4 : 0;
    for (std::uint64_t k = first; k < after; k += k < first + 8 ? 1 : 13) {
      places.push_back(static_cast<std::int64_t>(s.bytes + k));
    }
    for (const std::int64_t place : places) {
      char* byte = data(slot) + place;
      *byte = static_cast<char>(*byte ^ 0x40);
      const SetFindings findings = found(0);
      *byte = static_cast<char>(*byte ^ 0x40);
      ASSERT_EQ(findings.intrusions.size(), 1u) << "slot " << slot << " byte " << place;
      const Intrusion& intrusion = findings.intrusions[0];
      EXPECT_EQ(intrusion.slot, slot);
      EXPECT_EQ(intrusion.what, place < 0 ? "before" : "after");
      EXPECT_EQ(intrusion.count, 1u);
      const std::int64_t distance = place < 0 ? -place : place - static_cast<std::int64_t>(s.bytes);
      EXPECT_NEAR(static_cast<double>(intrusion.where), static_cast<double>(distance), 3.0);
    }
  }
  EXPECT_TRUE(found(0).intrusions.empty());
}

TEST_F(JudgeCases, FindAChangedInput) {
  open();
  look_at(1);
  data<float>(kX)[400] += 1;
  data<float>(kX)[900] += 1;
  data<float>(kP)[6] = 5;
  const auto broken = judge->broken_seals();
  ASSERT_TRUE(broken);
  EXPECT_EQ(*broken, std::vector<int>{1});
  ASSERT_TRUE(judge->poison({{0, 1}, {1, 2}}, true));
  EXPECT_TRUE(found(0).intrusions.empty());
  const SetFindings findings = found(1);
  ASSERT_EQ(findings.intrusions.size(), 2u);
  EXPECT_EQ(findings.intrusions[0].what, "input");
  EXPECT_EQ(findings.intrusions[0].slot, kX);
  EXPECT_EQ(findings.intrusions[0].count, 2u);
  EXPECT_EQ(findings.intrusions[0].where, 400u);
  EXPECT_TRUE(findings.intrusions[0].where_known);
  EXPECT_EQ(findings.intrusions[1].slot, kP);
  EXPECT_EQ(findings.intrusions[1].where, 6u);
}

// With its own inputs gone, only the fact of a change is known.
TEST_F(JudgeCases, FindAChangeOfInputsThatWereNotDrawnHere) {
  open();
  ASSERT_TRUE(judge->lean(0, key_of(9)));
  ASSERT_TRUE(judge->seal(0, true));
  ASSERT_TRUE(judge->poison({{0, 1}}, true));
  EXPECT_TRUE(found(0).intrusions.empty());
  look_at(0);
  data<float>(kX)[0] += 1;
  const SetFindings findings = found(0);
  ASSERT_EQ(findings.intrusions.size(), 1u);
  EXPECT_FALSE(findings.intrusions[0].where_known);
}

TEST_F(JudgeCases, NoticeAReferenceThatIsRandomOrCrashes) {
  open();
  noise = 1e-9;
  const auto random = judge->run_reference(0, fake::image({"reference"}), reference(), true);
  ASSERT_TRUE(random);
  EXPECT_FALSE(*random);
  EXPECT_TRUE(*judge->run_reference(0, fake::image({"reference"}), reference(), false));
  const auto misfit = judge->run_reference(0, fake::image({}), reference(), false);
  ASSERT_FALSE(misfit);
  EXPECT_EQ(misfit.error().kind, ErrorKind::kBadInput);
  const LaunchPlan wild =
      in_a_row({kernel("reference", {constant(std::uint64_t{64}), tensor(kY), tensor(kB)})});
  const auto crashed = judge->run_reference(0, fake::image({"reference"}), wild, false);
  ASSERT_FALSE(crashed);
  EXPECT_EQ(crashed.error().kind, ErrorKind::kTask);
  EXPECT_TRUE(contains(crashed.error().message, "ILLEGAL_ADDRESS")) << crashed.error().message;
  EXPECT_FALSE(judge->verify({0}, true)) << "the context is broken";
}

}  // namespace
}  // namespace kernelpro::testing

#endif
