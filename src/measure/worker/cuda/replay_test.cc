// SPDX-License-Identifier: Apache-2.0
// The role cuda-replay, as compute-sanitizer and ncu start it.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "core/plan/protocol.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "measure/worker/roles.h"
#include "measure/worker/testing/fake_gpu.h"

namespace kernelpro::testing {
namespace {

constexpr int kElements = 50;

struct Replays : FakeGpu {
  Replays() : FakeGpu(Needs::kJudgeKernels) {}
  void SetUp() override {
    FakeGpu::SetUp();
    if (IsSkipped()) return;
    fake::define("look", {{8, 8}, [this](fake::Launch& launch) {
                            const float* x = launch.memory<float>(0, kElements);
                            if (x != nullptr) seen.assign(x, x + kElements);
                          }});
    fake::define("wild", {{8, 8}, [](fake::Launch& launch) { launch.bytes_at(64, 4); }});
    ASSERT_TRUE(write_file(join(folder.path(), "k.cubin"), fake::image({"look", "wild"})));
  }
  int replay(const std::string& file) {
    std::string program = "kernelpro-worker", role = "cuda-replay", path = file;
    char* arguments[] = {program.data(), role.data(), path.data(), nullptr};
    return cuda_replay(3, arguments);
  }
  int replay_kernel(const char* name) {
    const Json json = {{"cubin", join(folder.path(), "k.cubin")},
                       {"plan", json_of(in_a_row({kernel(name, {tensor(0), tensor(1)})}))},
                       {"layout", json_of(toy_layout(kElements))},
                       {"tensors", tensors_json(task)},
                       {"key", key_to_text(key_of(11))}};
    const std::string file = join(folder.path(), "replay.json");
    EXPECT_TRUE(write_file(file, dump_json(json)));
    return replay(file);
  }

  const Task task = two_vectors(kElements);
  const TempDir folder;
  std::vector<float> seen;
};

TEST_F(Replays, RunThePlanOnceOnTheTasksInputs) {
  ASSERT_EQ(replay_kernel("look"), 0);
  std::vector<float> x(kElements);
  draw_inputs(task.tensors[0], 0, key_of(11), 0, kElements, x.data());
  EXPECT_EQ(seen, x);
  // Only the plan is between the profiler's marks.
  std::vector<std::string> marked(
      std::find(fake::log().begin(), fake::log().end(), "ProfilerStart"),
      std::find(fake::log().begin(), fake::log().end(), "ProfilerStop"));
  EXPECT_EQ(marked, (std::vector<std::string>{"ProfilerStart", "GraphLaunch", "run look",
                                              "StreamSynchronize"}));
}

TEST_F(Replays, EndWithTheReason) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(replay_kernel("wild"), 1);
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), "ILLEGAL_ADDRESS"));
  EXPECT_EQ(replay(join(folder.path(), "missing.json")), 1);
  ASSERT_TRUE(write_file(join(folder.path(), "bad.json"), "{\"plan\":{}}"));
  EXPECT_EQ(replay(join(folder.path(), "bad.json")), 1);
}

TEST_F(Replays, GiveAllBackWhateverFails) {
  // Local memory is no matter here, and the last parameter is known by the next one's absence.
  with_every_call_failing([&] { return replay_kernel("look") == 0; },
                          {"FuncGetAttribute", "ModuleGetFunction", "FuncGetParamInfo"});
}

}  // namespace
}  // namespace kernelpro::testing

#endif
