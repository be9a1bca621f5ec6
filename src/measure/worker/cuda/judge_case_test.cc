// SPDX-License-Identifier: Apache-2.0
// The judge's buffers and comparisons, with its own kernels run on the host.
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/judge_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "core/task/inputs.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"
#include "measure/worker/testing/fake_gpu.h"

namespace kernelpro::testing {
namespace {

// One set's slots where a worker maps them, at the candidate's addresses.
struct View {
  std::vector<PhysicalMemory> memory;
  AddressRange range;

  View(const CudaDriver& cu, const JudgeCase& judge, int set) {
    const AddressLayout& layout = judge.layout();
    range = *AddressRange::reserve(cu, layout.base, layout.reserve_bytes);
    for (std::size_t i = 0; i < layout.slots.size(); ++i) {
      const AddressLayout::Slot& slot = layout.slots[i];
      const auto fds = judge.share(set, {static_cast<int>(i)}, false);
      memory.push_back(*PhysicalMemory::import(cu, (*fds)[0].get(), slot.mapping_bytes));
      KP_ASSERT(range.map(0, slot.mapping, slot.mapping_bytes, memory.back().handle()));
    }
  }
};

constexpr int kElements = 1001;

// y = 2 x, a bool b = x > 0, and a parameter p that nothing depends on.
Task toy(DType floating) {
  Task task;
  task.name = "toy";
  task.tensors = {{"x", Role::kInput, floating, {"N"}, {Init::Kind::kNormal, 1, 2}, 0},
                  {"p", Role::kParameter, floating, {"7"}, {Init::Kind::kUniform, 0, 1}, 0},
                  {"y", Role::kOutput, floating, {"N"}, {}, 0},
                  {"b", Role::kOutput, DType::kBool, {"N"}, {}, 0}};
  task.cases = {Case{"toy", {{"N", kElements}}, true, {}}};
  task.workspace = "100";
  if (floating == DType::kFp16) task.precision = Precision::kFp16;
  if (floating == DType::kBf16) task.precision = Precision::kBf16;
  return task;
}
constexpr int kX = 0, kP = 1, kY = 2, kB = 3, kWorkspace = 4;

void store(DType dtype, void* data, std::size_t i, float value) {
  if (dtype == DType::kFp32) static_cast<float*>(data)[i] = value;
  if (dtype == DType::kFp16) static_cast<unsigned short*>(data)[i] = kp::to_half(value);
  if (dtype == DType::kBf16) static_cast<unsigned short*>(data)[i] = kp::to_bfloat16(value);
}

struct JudgeCases : FakeContext {
  JudgeCases() : FakeContext(Needs::kJudgeKernels) {}
  void SetUp() override {
    FakeContext::SetUp();
    if (IsSkipped()) return;
    auto loaded = TrustedKernels::load(cu(), context);
    ASSERT_TRUE(loaded) << loaded.error().text();
    kernels = std::move(*loaded);
  }
  void TearDown() override {
    view.reset();
    judge.reset();
    kernels = TrustedKernels();
    FakeContext::TearDown();
  }

  Result<JudgeCase> make(int sets, int sharing = 0, Policy policy = Policy::kContract) {
    return JudgeCase::open(cu(), context, kernels, judge_tensors(task, task.cases[0], policy, true),
                           static_cast<std::uint64_t>(workspace_bytes(task, task.cases[0])), sets,
                           sharing);
  }
  std::vector<kp::DrawSpec> specs() const {
    std::vector<kp::DrawSpec> all;
    for (const Tensor& t : task.tensors) all.push_back(draw_spec(t));
    return all;
  }
  // `run` computes y and b from x; y as doubles.
  void define_reference() {
    fake::define("reference", {{8, 8, 8}, [this](fake::Launch& launch) {
                                 const void* x = launch.memory<char>(0, 2 * kElements);
                                 double* y = launch.memory<double>(1, kElements);
                                 bool* b = launch.memory<bool>(2, kElements);
                                 if (x == nullptr || y == nullptr || b == nullptr) return;
                                 for (int i = 0; i < kElements; ++i) {
                                   const double v = element_as_double(task.tensors[0].dtype, x, i);
                                   y[i] = 2 * v + jitter++ * noise;
                                   b[i] = v > 0;
                                 }
                               }});
  }
  LaunchPlan reference() const {
    return in_a_row({kernel("reference", {tensor(kX), tensor(kY), tensor(kB)})});
  }
  // A judge with every set drawn, referenced and sealed.
  void open(DType floating = DType::kFp32, int sets = 2, int sharing = 0,
            Policy policy = Policy::kContract) {
    task = toy(floating);
    define_reference();
    auto made = make(sets, sharing, policy);
    ASSERT_TRUE(made) << made.error().text();
    judge = std::make_unique<JudgeCase>(std::move(*made));
    for (int set = 0; set < sets; ++set) {
      ASSERT_TRUE(judge->draw(set, key_of(77u + static_cast<unsigned>(set)), specs()));
      const auto agrees = judge->run_reference(set, fake::image({"reference"}), reference(), true);
      ASSERT_TRUE(agrees) << agrees.error().text();
      ASSERT_TRUE(*agrees);
      ASSERT_TRUE(judge->seal(set, true));
    }
  }
  // As a candidate sees a set.
  void look_at(int set) {
    view.reset();
    view = std::make_unique<View>(cu(), *judge, set);
  }
  template <class T = char>
  T* data(int slot) {
    return at<T>(judge->layout().slots[static_cast<std::size_t>(slot)].address);
  }
  // A correct call on the set that is looked at.
  void compute() {
    const DType dtype = task.tensors[kX].dtype;
    for (int i = 0; i < kElements; ++i) {
      const double v = element_as_double(dtype, data(kX), i);
      store(dtype, data(kY), static_cast<std::size_t>(i), static_cast<float>(2 * v));
      data<bool>(kB)[i] = v > 0;
    }
  }
  SetFindings found(int set, bool intrusions = true) {
    const auto findings = judge->verify({set}, intrusions);
    EXPECT_TRUE(findings) << findings.error().text();
    return findings ? (*findings)[0] : SetFindings();
  }
  static long count_log(const std::string& line) {
    return std::count(fake::log().begin(), fake::log().end(), line);
  }

  Task task;
  double noise = 0;
  int jitter = 0;
  TrustedKernels kernels;
  std::unique_ptr<JudgeCase> judge;
  std::unique_ptr<View> view;
};

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

// Results of another set are wrong, however right they were there.
TEST_F(JudgeCases, TellSetsApart) {
  open();
  look_at(0);
  compute();
  const std::string right(data(kY), 4 * kElements);
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
          const auto i = std::uniform_int_distribution<std::size_t>(0, kElements - 1)(random);
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
  ASSERT_TRUE(judge->window(0, kY, kElements - 2, 100, &bad, &got, &expected));
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

TEST_F(JudgeCases, ShareParametersAndTheWorkspace) {
  open(DType::kFp32, 3, 2);
  EXPECT_FALSE(judge->own_memory(1, kP));
  EXPECT_TRUE(judge->own_memory(2, kP)) << "only the first two share";
  for (const int slot : {kX, kY, kB})
    EXPECT_TRUE(judge->own_memory(1, static_cast<std::size_t>(slot)));
  EXPECT_FALSE(judge->own_memory(1, kWorkspace));
  EXPECT_FALSE(judge->own_memory(2, kWorkspace));
}

TEST_F(JudgeCases, PoisonWithAnyKeyDiffersFromThePoisonBefore) {
  open();
  std::vector<std::string> contents;
  for (const std::uint64_t key : {1ull, 2ull, 1ull << 62, 2ull << 62, 3ull << 62}) {
    ASSERT_TRUE(judge->poison({{0, key}}, false));
    contents.push_back(*judge->fetch(0, kY, false));
    for (std::size_t i = 0; i + 1 < contents.size(); ++i) EXPECT_NE(contents[i], contents.back());
  }
  look_at(0);
  const std::string inputs(data(kX), 4 * kElements);
  ASSERT_TRUE(judge->poison({{0, 9}}, true));
  EXPECT_EQ(inputs, std::string(data(kX), 4 * kElements)) << "inputs keep their values";
  EXPECT_TRUE(judge->broken_seals()->empty());
}

TEST_F(JudgeCases, DisturbAnInputAndPutItBack) {
  open();
  look_at(0);
  const std::string before(data(kX), 4 * kElements);
  ASSERT_TRUE(judge->disturb(0, kX, 10, 0, 3, 1e6f));
  EXPECT_EQ(data<float>(kX)[10], 1e6f);
  EXPECT_EQ(data<float>(kX)[11], -1e6f);
  ASSERT_TRUE(judge->restore());
  EXPECT_EQ(before, std::string(data(kX), 4 * kElements));
  ASSERT_TRUE(judge->disturb(0, kX, kElements - 2, 4, 100, 0));
  EXPECT_EQ(data<float>(kX)[kElements - 1], data<float>(kX)[5]);
  ASSERT_TRUE(judge->restore());
  ASSERT_TRUE(judge->restore());  // nothing is left to do
  EXPECT_EQ(before, std::string(data(kX), 4 * kElements));
  EXPECT_FALSE(judge->disturb(0, kX, kElements, 0, 1, 0));
}

TEST_F(JudgeCases, VaryParametersButNotConstants) {
  open();
  const auto values = [&] {
    const std::string bytes = *judge->fetch(0, kP, false);
    std::vector<float> all(7);
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  };
  const std::vector<float> before = values();
  const std::string inputs = *judge->fetch(0, kX, false);
  ASSERT_TRUE(judge->vary(0, key_of(4)));
  const std::vector<float> varied = values();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NE(before[i], varied[i]);
    EXPECT_NEAR(varied[i] / before[i], 1, 1.0 / 60);
  }
  EXPECT_EQ(inputs, *judge->fetch(0, kX, false)) << "it is no parameter";
  std::vector<kp::DrawSpec> constants = specs();
  constants[kP] = {};
  constants[kP].kind = 4;
  constants[kP].a = 1;
  ASSERT_TRUE(judge->draw(0, key_of(1), constants));
  ASSERT_TRUE(judge->vary(0, key_of(4)));
  EXPECT_EQ(values(), std::vector<float>(7, 1.0f));
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

TEST_F(JudgeCases, GiveAllMemoryBackWhateverFails) {
  task = toy(DType::kFp32);
  with_every_call_failing([&] { return make(2, 2).has_value(); }, {"MemGetInfo"});
}

TEST_F(JudgeCases, SayHowMuchMemoryIsMissing) {
  task = toy(DType::kFp32);
  fake::set_memory(20u << 20);
  const auto short_of = make(3);
  ASSERT_FALSE(short_of);
  EXPECT_EQ(short_of.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(short_of.error().message, "GPU memory for a case: 2 MiB are wanted, 0 MiB are free");
}

// A stage holds a set's contents from `reveal` to the next `clear_stage`, and its own outputs.
TEST_F(JudgeCases, AStageHoldsOneSetAtATime) {
  open();
  ASSERT_TRUE(judge->open_stage(1));
  EXPECT_TRUE(judge->has_stage(1));
  EXPECT_FALSE(judge->has_stage(0));
  ASSERT_TRUE(judge->open_stage(0));
  EXPECT_FALSE(judge->share_stage(0, {kWorkspace})) << "a module has its own";
  const auto memory_of = [&](int slot) {
    const auto fds = judge->share_stage(0, {slot});
    return *PhysicalMemory::import(
        cu(), (*fds)[0].get(), judge->layout().slots[static_cast<std::size_t>(slot)].mapping_bytes);
  };
  const PhysicalMemory x = memory_of(kX), y = memory_of(kY), b = memory_of(kB);
  AddressRange range =
      *AddressRange::reserve(cu(), judge->layout().base, judge->layout().reserve_bytes);
  for (const auto& [slot, memory] : {std::pair(kX, &x), {kY, &y}, {kB, &b}}) {
    const AddressLayout::Slot& s = judge->layout().slots[static_cast<std::size_t>(slot)];
    ASSERT_TRUE(range.map(0, s.mapping, s.mapping_bytes, memory->handle()));
  }
  for (int set = 0; set < 2; ++set) {
    ASSERT_TRUE(judge->poison({{set, 5u + static_cast<unsigned>(set)}}, true));
    ASSERT_TRUE(judge->clear_stage(0, set));
    ASSERT_TRUE(judge->reveal(0, set));
    compute();
    if (set == 1) data<float>(kY)[7] += 1;
    ASSERT_TRUE(judge->collect(0, set));
    EXPECT_TRUE(judge->stage_intrusions(0, set)->empty());
    EXPECT_EQ(found(set).outputs[0].bad, set == 1 ? 1u : 0u);
  }
  // Whatever lies there when it is cleared is gone.
  const float left = data<float>(kX)[3];
  ASSERT_TRUE(judge->clear_stage(0, 0));
  EXPECT_NE(data<float>(kX)[3], left);
  ASSERT_TRUE(judge->collect(0, 0));
  EXPECT_EQ(found(0).outputs[0].unwritten, static_cast<std::uint64_t>(kElements));
  // Nor may it change anything but the outputs.
  ASSERT_TRUE(judge->reveal(0, 0));
  data<float>(kX)[3] += 1;
  data<char>(kY)[-1] ^= 1;
  const auto intrusions = judge->stage_intrusions(0, 0);
  ASSERT_TRUE(intrusions && intrusions->size() == 2u);
  EXPECT_EQ((*intrusions)[0].what, "before");
  EXPECT_EQ((*intrusions)[1].what, "input");
  EXPECT_EQ((*intrusions)[1].where, 3u);
}

}  // namespace
}  // namespace kernelpro::testing

#endif
