// SPDX-License-Identifier: Apache-2.0
// What a capture process answers is checked, never believed.
#include "measure/cuda/module_plan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/files.h"
#include "base/text.h"
#include "core/plan/captured_call.h"

namespace kernelpro {
namespace {

struct ModulePlans : ::testing::Test {
  void SetUp() override {
    ::setenv("KERNELPRO_CACHE", cache.path().c_str(), 1);
    ASSERT_TRUE(write_file(join(folder.path(), "a.cubin"), "image a"));
    ASSERT_TRUE(write_file(join(folder.path(), "b.cubin"), "image b"));
    ASSERT_TRUE(write_file(join(folder.path(), "table.bin"), "1234"));
  }
  void TearDown() override { ::unsetenv("KERNELPRO_CACHE"); }

  // A call of two kernels, in images 1 and 0, and a table.
  CapturedCall call(bool second) const {
    CapturedCall made;
    made.tensors = {layout.base + (second ? 1ull << 42 : 0), layout.reserve_bytes};
    made.scratch = {second ? 0x360000000000ull : layout.base + kScratchOffset, 1024};
    made.held = {{{second ? 0x5c0000000000ull : 0x5b0000000000ull, 4}, "same", "table.bin"}};
    for (const int image : {1, 0}) {
      PlanNode node;
      node.kind = PlanNode::Kind::kKernel;
      node.function = "k" + std::to_string(image);
      node.image = image;
      const std::uint64_t table = made.held[0].range.address;
      node.parameters.emplace_back().bytes.assign(reinterpret_cast<const char*>(&table), 8);
      made.plan.nodes.push_back(node);
    }
    return made;
  }
  static Json capture(const CapturedCall& call, const std::vector<std::string>& images) {
    return {{"call", *parse_json(captured_call_to_json(call))}, {"images", images}};
  }
  Json answer(const std::vector<std::string>& images = {"a.cubin", "b.cubin"}) const {
    return {{"captures", {capture(call(false), images), capture(call(true), images)}},
            {"notes", {"a note"}}};
  }
  ModuleForm form(const Json& answered) const {
    const Fd opened(::open(folder.path().c_str(), O_PATH | O_DIRECTORY));
    return module_form(answered, layout, opened.get());
  }
  std::string why(const Json& answered) const {
    const ModuleForm made = form(answered);
    const auto* host = std::get_if<HostForm>(&made);
    return host == nullptr ? "a plan" : host->reason;
  }

  const TempDir cache, folder;
  const AddressLayout layout = make_layout({4096, 4096}, 0, 2u << 20, 0x200000000000ull);
};

TEST_F(ModulePlans, KeepTheirFilesOutOfReach) {
  const ModuleForm made = form(answer());
  const auto* plan = std::get_if<ModulePlan>(&made);
  ASSERT_NE(plan, nullptr) << std::get<HostForm>(made).reason;
  EXPECT_EQ(plan->notes, std::vector<std::string>{"a note"});
  ASSERT_EQ(plan->images.size(), 2u);
  EXPECT_EQ(plan->plan.nodes[0].image, 0) << "in the order of the launches";
  EXPECT_EQ(plan->plan.nodes[1].image, 1);
  ASSERT_EQ(plan->plan.constants.size(), 1u);
  ASSERT_TRUE(write_file(join(folder.path(), "b.cubin"), "something else"));
  EXPECT_EQ(*read_file(plan->images[0]), "image b");
  EXPECT_EQ(*read_file(plan->plan.constants[0].file), "1234");
  for (const std::string& path : plan->images) EXPECT_TRUE(path.starts_with(cache.path())) << path;
}

TEST_F(ModulePlans, LeaveOutImagesThatNoLaunchNeeds) {
  ASSERT_TRUE(write_file(join(folder.path(), "c.cubin"), "image c"));
  const ModuleForm made = form(answer({"a.cubin", "b.cubin", "c.cubin"}));
  const auto* plan = std::get_if<ModulePlan>(&made);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->images.size(), 2u);
}

TEST_F(ModulePlans, NameTheOperatorsOfTheirNodes) {
  const auto operators = [&](const Json& list) {
    Json answered = answer();
    answered["operators"] = list;
    const ModuleForm made = form(answered);
    const auto* plan = std::get_if<ModulePlan>(&made);
    return plan == nullptr ? std::vector<OperatorCall>() : plan->operators;
  };
  const Json product = {{"name", "addmm"},      {"where", "fc1 (Linear)"},
                        {"kind", "product"},    {"first", 0},
                        {"nodes", 1},           {"read", 4096},
                        {"written", 1024},      {"flops", 1e6},
                        {"from", Json::array()}};
  Json relu = {{"name", "relu"}, {"kind", "pointwise"}, {"first", 1},
               {"nodes", 1},     {"read", 1024},        {"from", {{0, 1024}}}};
  const auto both = operators({product, relu});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(operator_words(both[0].name, both[0].where), "`addmm` (fc1)");
  EXPECT_EQ(both[0].kind, OperatorKind::kProduct);
  EXPECT_EQ(both[0].flops, 1e6);
  ASSERT_EQ(both[1].from.size(), 1u);
  EXPECT_EQ(both[1].from[0].from, 0);
  EXPECT_EQ(both[1].from[0].bytes, 1024);
  EXPECT_TRUE(operators({relu}).empty()) << "it reads what nobody wrote";
  relu["nodes"] = 2;
  EXPECT_TRUE(operators({product, relu}).empty()) << "more nodes than the plan has";
  relu["nodes"] = 1, relu["first"] = 0;
  EXPECT_TRUE(operators({product, relu}).empty()) << "a node of two operators";
  EXPECT_TRUE(operators("nonsense").empty());
}

TEST_F(ModulePlans, BelieveNothing) {
  EXPECT_EQ(why(answer()), "a plan");
  EXPECT_TRUE(contains(why(Json::object()), "not two of this case"));
  EXPECT_TRUE(contains(why({{"captures", {1, 2}}}), "cannot be read"));
  EXPECT_TRUE(contains(why(answer({"a.cubin"})), "an image that is not there"));
  EXPECT_TRUE(contains(why(answer({})), "an image that is not there"));
  EXPECT_TRUE(contains(why(answer({"a.cubin", "../" + folder.path()})), "names no file"));
  EXPECT_TRUE(contains(why(answer({"a.cubin", "none"})), "names no file"));
  ASSERT_EQ(::symlink("/etc/hostname", join(folder.path(), "link").c_str()), 0);
  EXPECT_TRUE(contains(why(answer({"a.cubin", "link"})), "names no file"));
  Json elsewhere = answer();
  elsewhere["captures"][0]["call"]["tensors"][0] = 0x210000000000ull;
  EXPECT_TRUE(contains(why(elsewhere), "not two of this case"));
  Json misplaced = answer();
  misplaced["captures"][0]["call"]["scratch"][0] = 0x310000000000ull;
  EXPECT_NE(why(misplaced), "a plan");
  Json short_table = answer();
  short_table["captures"][0]["call"]["held"][0]["file"] = "/etc/passwd";
  EXPECT_TRUE(contains(why(short_table), "names no file"));
}

}  // namespace
}  // namespace kernelpro
