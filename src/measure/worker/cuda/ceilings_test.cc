// SPDX-License-Identifier: Apache-2.0
// The role cuda-ceilings over the fake clock.
#if KERNELPRO_HAVE_CUDA

#include <memory>

#include "core/machine/machine.h"
#include "measure/worker/roles.h"
#include "measure/worker/testing/fake_gpu.h"
#include "measure/worker/testing/role.h"

namespace kernelpro::testing {
namespace {

struct CudaCeilings : FakeGpu {
  CudaCeilings() : FakeGpu(Needs::kJudgeKernels) {}
  void SetUp() override {
    FakeGpu::SetUp();
    if (IsSkipped()) return;
    // A quarter of it is copied. Our kernels take their time and do nothing.
    fake::set_memory(64u << 20);
    fake::define("poison", {{8, 8, 8}});
    fake::define("copy", {{8, 8, 8}, nullptr, 400});
    fake::define("multiply_add", {{8, 4, 4, 4}, nullptr, 1000});
    role = std::make_unique<RoleThread>(cuda_ceilings);
  }
  void TearDown() override {
    if (role) role->end();
    role.reset();
    FakeGpu::TearDown();
  }
  Json ask() { return role->ask(Json::object()); }
  std::unique_ptr<RoleThread> role;
};

TEST_F(CudaCeilings, AreMediansOfTheFakeClock) {
  const Json answer = ask();
  ASSERT_TRUE(answer.contains("machine")) << answer;
  const auto machine = machine_from_json(dump_json(answer["machine"]));
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->name, "Fake GPU");
  EXPECT_EQ(machine->arch, "sm_90a");
  EXPECT_EQ(machine->parallel_units, 4);
  const double fmas = 2.0 * 16 * 20000 * (4 * 8) * 256;
  EXPECT_NEAR(machine->ceilings.fma_flops_per_s / (fmas / 1000e-6), 1, 1e-6);
  // The driver's copy takes a microsecond.
  EXPECT_NEAR(machine->ceilings.copy_bytes_per_s / (2.0 * (16 << 20) / 1e-6), 1, 1e-3);
  EXPECT_EQ(fake::alive(), "");
}

// A launch that fails gives no ceiling, least of all a slow one.
TEST_F(CudaCeilings, AreNotInventedWhereAMeasurementFails) {
  for (const char* call : {"MemAlloc", "MemcpyDtoDAsync", "EventRecord", "EventElapsedTime",
                           "EventSynchronize", "EventCreate", "ModuleGetFunction"}) {
    fake::fail(call, CUDA_ERROR_LAUNCH_FAILED, 1);
    const Json answer = ask();
    EXPECT_TRUE(contains(JsonReader(answer).text("error"), "LAUNCH_FAILED")) << call << answer;
    EXPECT_EQ(fake::alive(), "") << call;
  }
  EXPECT_TRUE(ask().contains("machine"));
}

}  // namespace
}  // namespace kernelpro::testing

#endif
