// SPDX-License-Identifier: Apache-2.0
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/cases.h"

#include <algorithm>
#include <memory>

#include "measure/worker/testing/fake_gpu.h"

namespace kernelpro::testing {
namespace {

struct Cases : FakeContext {
  void SetUp() override {
    FakeContext::SetUp();
    if (IsSkipped()) return;
    cases = std::make_unique<OpenCases>(cu(), 0);
    judge.open(cu(), 256u << 20);
  }
  void TearDown() override {
    cases.reset();
    judge.close();
    FakeContext::TearDown();
  }

  Result<Json> open(const Json& list) { return cases->open({{{"cases", list}}, {}}); }
  Result<Json> open_toy(int sets = 3) {
    return open(Json::array({{{"case", "toy"},
                              {"layout", json_of(layout)},
                              {"sets", sets},
                              {"inputs", {true, false, false}}}}));
  }
  Result<Json> memory(const Json& message, const std::vector<std::pair<int, int>>& what = {}) {
    WorkerCommand command{message, {}};
    for (const auto& [set, slot] : what) {
      command.fds.push_back(judge.share());
      *at<int>(judge.last()) = 100 * set + slot;
    }
    return cases->memory(command);
  }
  Result<Json> give(int set, const std::vector<int>& slots) {
    std::vector<std::pair<int, int>> what;
    for (const int slot : slots) what.emplace_back(set, slot);
    return memory(
        {{"case", "toy"}, {"set", static_cast<unsigned>(set)}, {"slots", unsigned_(slots)}}, what);
  }
  static Json unsigned_(const std::vector<int>& slots) {
    Json all = Json::array();
    for (const int slot : slots) all.push_back(static_cast<unsigned>(slot));
    return all;
  }
  const OpenCase& toy() { return **cases->of({{{"case", "toy"}}, {}}); }
  // What the slots' first words hold at the case's addresses.
  std::vector<int> seen() {
    std::vector<int> words;
    for (const AddressLayout::Slot& slot : layout.slots) words.push_back(*at<int>(slot.mapping));
    return words;
  }
  static std::ptrdiff_t maps() {
    return std::count(fake::log().begin(), fake::log().end(), "MemMap");
  }

  const AddressLayout layout = toy_layout(1000, 64);
  JudgeMemory judge;  // word 0 of each piece holds 100 set + slot
  std::unique_ptr<OpenCases> cases;
};

using Words = std::vector<int>;

TEST_F(Cases, MapTheSetThatIsAskedFor) {
  ASSERT_TRUE(open_toy());
  EXPECT_FALSE(cases->bound(toy()));
  ASSERT_TRUE(give(0, {0, 1, 2}));
  ASSERT_TRUE(give(1, {1}));
  ASSERT_TRUE(give(2, {0}));  // in two frames
  ASSERT_TRUE(give(2, {1}));
  const std::vector<std::pair<int, Words>> expected = {
      {0, {0, 1, 2}}, {1, {0, 101, 2}}, {2, {200, 201, 2}}, {0, {0, 1, 2}}};
  for (const auto& [set, words] : expected) {
    const auto bound = cases->bind(toy(), set);
    ASSERT_TRUE(bound) << bound.error().text();
    EXPECT_EQ(seen(), words) << "set " << set;
  }
  EXPECT_TRUE(cases->bound(toy()));
  // Only differences cost a call.
  ASSERT_TRUE(cases->bind(toy(), 1));
  fake::clear_log();
  ASSERT_TRUE(cases->bind(toy(), 1));
  EXPECT_EQ(maps(), 0);
  ASSERT_TRUE(cases->bind(toy(), 0));
  EXPECT_EQ(maps(), 1);
}

// What is mapped is known by where its record lies, where a later record may lie too.
// What a kernel that adds 1 to each slot's first word is told, by slot.
TEST_F(Cases, LetKernelsReadInputsAlone) {
  fake::define("add", {{8}, [](fake::Launch& launch) {
                         if (int* word = launch.memory<int>(0, 1)) *word += 1;
                       }});
  const auto faults = [&](std::uint64_t address) {
    fake::define("unused", {});
    CUmodule module = nullptr;
    CUfunction add = nullptr;
    const std::string image = fake::image({"add"});
    EXPECT_EQ(cu().ModuleLoadData(&module, image.c_str()), CUDA_SUCCESS);
    EXPECT_EQ(cu().ModuleGetFunction(&add, module, "add"), CUDA_SUCCESS);
    void* parameters[] = {&address};
    cu().LaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    const CUresult result = cu().CtxSynchronize();
    fake::break_context(CUDA_SUCCESS);
    cu().ModuleUnload(module);
    return result;
  };
  const auto opened = [&](bool writable) {
    return cases->open({{{"cases", Json::array({{{"case", "toy"},
                                                 {"layout", json_of(layout)},
                                                 {"sets", 1},
                                                 {"inputs", {true, false, false}}}})},
                         {"writable", writable}},
                        {}});
  };
  for (const bool writable : {false, true, false}) {
    ASSERT_TRUE(opened(writable));
    ASSERT_TRUE(give(0, {0, 1, 2}));
    ASSERT_TRUE(cases->bind(toy(), 0));
    EXPECT_EQ(faults(layout.slots[0].mapping),
              writable ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(faults(layout.slots[1].mapping), CUDA_SUCCESS);
    EXPECT_EQ(faults(layout.slots[2].mapping), CUDA_SUCCESS);
    EXPECT_EQ(seen(), (Words{writable ? 1 : 0, 2, 3}));
  }
  fake::refuse_read_only();  // as before there was such a thing
  ASSERT_TRUE(opened(false));
  ASSERT_TRUE(give(0, {0, 1, 2}));
  ASSERT_TRUE(cases->bind(toy(), 0));
  EXPECT_EQ(faults(layout.slots[0].mapping), CUDA_SUCCESS);
}

TEST_F(Cases, NeverKeepMemoryThatWasReplaced) {
  ASSERT_TRUE(open_toy());
  ASSERT_TRUE(give(0, {0, 1, 2}));
  ASSERT_TRUE(cases->bind(toy(), 0));
  const PhysicalMemory* mapped = toy().sets[0][1].get();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(give(0, {1}));
    if (toy().sets[0][1].get() == mapped) break;
  }
  *at<int>(judge.last()) = 1000;
  ASSERT_TRUE(cases->bind(toy(), 0));
  EXPECT_EQ(seen()[1], 1000);
}

TEST_F(Cases, SwitchBetweenCasesAtTheSameAddresses) {
  Json list = Json::array();
  for (const char* name : {"toy", "other"}) {
    list.push_back({{"case", name}, {"layout", json_of(layout)}, {"sets", 1}});
  }
  ASSERT_TRUE(open(list));
  ASSERT_TRUE(give(0, {0, 1, 2}));
  ASSERT_TRUE(
      memory({{"case", "other"}, {"set", 0u}, {"slots", {0u, 1u, 2u}}}, {{5, 0}, {5, 1}, {5, 2}}));
  const OpenCase& other = **cases->of({{{"case", "other"}}, {}});
  ASSERT_TRUE(cases->bind(toy(), 0));
  ASSERT_TRUE(cases->bind(other, 0));
  EXPECT_FALSE(cases->bound(toy()));
  EXPECT_EQ(seen(), (Words{500, 501, 502}));
  ASSERT_TRUE(cases->bind(toy(), 0));
  EXPECT_EQ(seen(), (Words{0, 1, 2}));
}

TEST_F(Cases, AreForgottenWhenOthersOpen) {
  ASSERT_TRUE(open_toy());
  ASSERT_TRUE(give(0, {0, 1, 2}));
  ASSERT_TRUE(cases->bind(toy(), 0));
  const std::string before = fake::alive();
  ASSERT_TRUE(open_toy(1));
  EXPECT_NE(fake::alive(), before);
  EXPECT_FALSE(cases->bound(toy()));
  EXPECT_FALSE(cases->bind(toy(), 0)) << "its memory is gone";
}

TEST_F(Cases, RefuseWhatDoesNotFit) {
  EXPECT_FALSE(open(Json::array()));
  EXPECT_FALSE(open(Json::array({{{"case", "toy"}, {"layout", {{"slots", {{1, 2}}}}}}})));
  EXPECT_FALSE(cases->of({{{"case", "toy"}}, {}}));
  EXPECT_FALSE(memory({{"case", "toy"}, {"set", 0u}, {"slots", {0u}}}, {{0, 0}}));
  ASSERT_TRUE(open_toy());
  EXPECT_FALSE(cases->bind(toy(), 0)) << "no slot has memory";
  EXPECT_FALSE(cases->bind(toy(), -1));
  EXPECT_FALSE(cases->bind(toy(), 3));
  EXPECT_FALSE(give(3, {0}));
  EXPECT_FALSE(give(0, {3}));
  EXPECT_FALSE(memory({{"case", "toy"}, {"set", 0u}, {"slots", {0u, 1u}}}, {{0, 0}}));
  EXPECT_FALSE(memory({{"case", "toy"}, {"set", 0u}, {"slots", {"x"}}}, {{0, 0}}));
  // A set without one slot is not half bound.
  ASSERT_TRUE(give(0, {0, 1}));
  EXPECT_FALSE(cases->bind(toy(), 0));
  EXPECT_FALSE(cases->bound(toy()));
  ASSERT_TRUE(give(0, {2}));
  EXPECT_TRUE(cases->bind(toy(), 0));
}

TEST_F(Cases, TryAgainAfterAFailure) {
  ASSERT_TRUE(open_toy());
  ASSERT_TRUE(give(0, {0, 1, 2}));
  for (const char* call : {"MemMap", "MemSetAccess"}) {
    for (int after = 0; after < 3; ++after) {
      ASSERT_TRUE(open_toy());
      ASSERT_TRUE(give(0, {0, 1, 2}));
      fake::fail(call, CUDA_ERROR_OUT_OF_MEMORY, after);
      EXPECT_FALSE(cases->bind(toy(), 0));
      EXPECT_FALSE(cases->bound(toy()));
      const auto bound = cases->bind(toy(), 0);
      EXPECT_TRUE(bound) << call << after << bound.error().text();
    }
  }
}

}  // namespace
}  // namespace kernelpro::testing

#endif
