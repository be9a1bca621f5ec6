// SPDX-License-Identifier: Apache-2.0
// What a judge's memory holds: shared parts, poison, changed inputs, stages.
#if KERNELPRO_HAVE_CUDA

#include <cstring>
#include <string>
#include <vector>

#include "measure/worker/testing/judge_cases.h"

namespace kernelpro::testing {
namespace {

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
  const std::string inputs(data(kX), 4 * kToyElements);
  ASSERT_TRUE(judge->poison({{0, 9}}, true));
  EXPECT_EQ(inputs, std::string(data(kX), 4 * kToyElements)) << "inputs keep their values";
  EXPECT_TRUE(judge->broken_seals()->empty());
}

TEST_F(JudgeCases, DisturbAnInputAndPutItBack) {
  open();
  look_at(0);
  const std::string before(data(kX), 4 * kToyElements);
  ASSERT_TRUE(judge->disturb(0, kX, 10, 0, 3, 1e6f));
  EXPECT_EQ(data<float>(kX)[10], 1e6f);
  EXPECT_EQ(data<float>(kX)[11], -1e6f);
  ASSERT_TRUE(judge->restore());
  EXPECT_EQ(before, std::string(data(kX), 4 * kToyElements));
  ASSERT_TRUE(judge->disturb(0, kX, kToyElements - 2, 4, 100, 0));
  EXPECT_EQ(data<float>(kX)[kToyElements - 1], data<float>(kX)[5]);
  ASSERT_TRUE(judge->restore());
  ASSERT_TRUE(judge->restore());  // nothing is left to do
  EXPECT_EQ(before, std::string(data(kX), 4 * kToyElements));
  EXPECT_FALSE(judge->disturb(0, kX, kToyElements, 0, 1, 0));
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
  EXPECT_EQ(found(0).outputs[0].unwritten, static_cast<std::uint64_t>(kToyElements));
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
