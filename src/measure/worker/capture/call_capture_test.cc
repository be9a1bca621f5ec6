// SPDX-License-Identifier: Apache-2.0
// From the calls of a program with its own memory and modules to a launch plan that others can run.
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/capture/call_capture.h"

#include <memory>

#include "measure/worker/cuda/graph.h"
#include "measure/worker/cuda/handles.h"
#include "measure/worker/testing/fake_gpu.h"

namespace kernelpro {
namespace {

using testing::at;
using testing::FakeGpu;
using testing::MappedLayout;
using testing::toy_layout;

constexpr std::uint64_t kElements = 1000;

// A module that has these kernels, for the fake driver and for LoadedImages. `salt` tells apart
// modules with the same ones.
std::string module_of(const std::vector<std::string>& kernels, const std::string& salt = "") {
  std::string image = fake::image(kernels) + '\0';
  for (const std::string& kernel : kernels)
    image += std::string(1, '\0') + ".text." + kernel + '\0';
  return image + salt;
}

TEST(LoadedImages, FindAKernelByItsModule) {
  LoadedImages images;
  const std::string one = module_of({"k"}, "1"), two = module_of({"k"}, "2");
  const int first = 0, second = 0;  // handles
  for (const auto& [image, handle] : {std::pair(&one, &first), std::pair(&two, &second)}) {
    images.begin_call();
    images.loaded(*image);
    images.loaded(*image);
    images.end_call(handle);
  }
  EXPECT_EQ(images.find(&second, "k"), 0);
  EXPECT_EQ(images.find(&first, "k"), 1) << "numbers are in the order of use";
  EXPECT_EQ(images.find(&second, "k"), 0);
  EXPECT_EQ(images.used(), (std::vector<std::string>{two, one}));
  const auto either = images.find(nullptr, "k");
  ASSERT_FALSE(either) << "an autotuner's other choices have the same name";
  EXPECT_TRUE(contains(either.error().reason, "several")) << either.error().reason;
  const auto none = images.find(&first, "other");
  ASSERT_FALSE(none);
  EXPECT_TRUE(contains(none.error().reason, "no loaded module")) << none.error().reason;
  EXPECT_FALSE(images.find(nullptr, "")) << "a name that is only the start of another's";
}

TEST(LoadedImages, PreferThoseOfLibrariesWhereTheModuleIsUnknown) {
  LoadedImages images;
  const int handle = 0;
  images.begin_call();
  images.loaded(module_of({"k"}, "tuned"));
  images.end_call(&handle);
  images.loaded(module_of({"k"}, "library"));
  EXPECT_EQ(images.find(nullptr, "k"), 0);
  EXPECT_EQ(images.used(), (std::vector<std::string>{module_of({"k"}, "library")}));
}

struct Captures : FakeGpu {
  void SetUp() override {
    FakeGpu::SetUp();
    if (IsSkipped()) return;
    Result<CudaContext> opened = CudaContext::open();
    ASSERT_TRUE(opened);
    context = std::move(*opened);
    stream = *make_stream(cu());
    // tmp = x + table, y = tmp * 2: by two modules, with one kernel's name.
    fake::define("step", {{8, 8, 8}, [](fake::Launch& launch) {
                            float* x = launch.memory<float>(0, kElements);
                            float* y = launch.memory<float>(1, kElements);
                            float* table = launch.memory<float>(2, 1);
                            if (x == nullptr || y == nullptr || table == nullptr) return;
                            for (std::size_t i = 0; i < kElements; ++i) y[i] = x[i] + *table;
                          }});
    for (const char* salt : {"1", "2"}) load(module_of({"step"}, salt));
    capture = std::make_unique<CallCapture>(cu(), 0, &images);
  }
  void TearDown() override {
    capture.reset();
    for (const CUmodule module : modules) cu().ModuleUnload(module);
    stream = CudaStream();
    context = CudaContext();
    FakeGpu::TearDown();
  }
  void load(const std::string& image) {
    images.begin_call();
    CUmodule module = nullptr;
    ASSERT_EQ(cu().ModuleLoadData(&module, image.data()), CUDA_SUCCESS);
    images.loaded(image);
    images.end_call(module);
    modules.push_back(module);
  }
  void launch(std::size_t module, std::uint64_t x, std::uint64_t y, std::uint64_t table) {
    CUfunction function = nullptr;
    ASSERT_EQ(cu().ModuleGetFunction(&function, modules[module], "step"), CUDA_SUCCESS);
    void* parameters[] = {&x, &y, &table};
    ASSERT_EQ(cu().LaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream.get(), parameters, nullptr),
              CUDA_SUCCESS);
  }
  std::uint64_t slot(std::size_t i) const { return capture->layout().slots[i].address; }

  // A program that made a table, and whose call allocates a tensor and its result.
  CapturedCall captured(bool second, float held = 3) {
    EXPECT_TRUE(capture->open(layout, second));
    const std::uint64_t table = capture->allocate(4, stream.get());
    *at<float>(table) = held;
    EXPECT_TRUE(capture->begin(stream.get(), {{1, 1}}));
    const std::uint64_t tmp = capture->allocate(4 * kElements, stream.get());
    const std::uint64_t y = capture->allocate(4 * kElements, stream.get());
    EXPECT_EQ(capture->number_of(tmp), 0);
    EXPECT_EQ(capture->number_of(y), 1);
    EXPECT_EQ(capture->number_of(table), -1);
    EXPECT_EQ(y, slot(1)) << "the output is computed in place";
    EXPECT_EQ(capture->steps(stream.get()), 0);
    launch(1, slot(0), tmp, table);
    EXPECT_EQ(capture->steps(stream.get()), 1);
    launch(0, tmp, y, table);
    EXPECT_EQ(capture->steps(stream.get()), 2);
    capture->free(tmp);
    EXPECT_TRUE(capture->end(stream.get()));
    EXPECT_EQ(capture->steps(stream.get()), -1);
    auto call = capture->exported(folder.path());
    EXPECT_TRUE(call) << call.error().reason;
    capture->free(table);
    capture->close();
    return call ? *call : CapturedCall();
  }

  const TempDir folder;
  const AddressLayout layout = toy_layout(kElements);
  CudaContext context;
  CudaStream stream;
  LoadedImages images;
  std::vector<CUmodule> modules;
  std::unique_ptr<CallCapture> capture;
};

TEST_F(Captures, BecomeAPlanThatRunsElsewhere) {
  const CapturedCall first = captured(false), second = captured(true);
  Result<LaunchPlan> plan = plan_of_captures(first, second);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->problem(), "");
  EXPECT_EQ(plan->nodes[0].image, 0) << "in the order of use";
  EXPECT_EQ(plan->nodes[1].image, 1);
  EXPECT_EQ(images.used(),
            (std::vector<std::string>{module_of({"step"}, "2"), module_of({"step"}, "1")}));
  ASSERT_EQ(plan->constants.size(), 1u);
  const auto bytes = read_file(join(folder.path(), plan->constants[0].file));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), plan->constants[0].bytes);
  capture.reset();
  // As the worker does it.
  AddressLayout there = layout;
  there.scratch_bytes = plan->scratch_bytes;
  MappedLayout mapped = MappedLayout::make(cu(), 0, layout);
  FixedMemory scratch;
  ASSERT_TRUE(scratch.cover(cu(), 0, kCandidateBase + kScratchOffset, plan->scratch_bytes));
  std::memcpy(at<char>(kCandidateBase + kScratchOffset + plan->constants[0].offset), bytes->data(),
              bytes->size());
  const std::vector<std::string> used = images.used();
  const auto graph = ReplayGraph::build(cu(), used, *plan, there);
  ASSERT_TRUE(graph) << graph.error().text();
  at<float>(layout.slots[0].address)[7] = 10;
  ASSERT_EQ(graph->launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(at<float>(layout.slots[1].address)[7], 16);
  EXPECT_EQ(graph->resident_blocks(plan->nodes[1]), 8);
  // A plan whose images are not all there.
  const auto less = ReplayGraph::build(cu(), used[0], *plan, there);
  ASSERT_FALSE(less);
  EXPECT_TRUE(contains(less.error().message, "in no image")) << less.error().message;
}

TEST_F(Captures, LeaveOutWhatDependsOnTheData) {
  const CapturedCall first = captured(false, 3), second = captured(true, 4);
  const Result<LaunchPlan> plan = plan_of_captures(first, second);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_TRUE(plan->constants.empty());
  EXPECT_GT(plan->scratch_bytes, first.scratch.bytes);
}

// Memory of a library, which it got from the driver.
TEST_F(Captures, TakeAlongMemoryThatOthersAllocated) {
  CUdeviceptr workspace = 0;
  ASSERT_EQ(cu().MemAlloc(&workspace, 4096), CUDA_SUCCESS);
  *at<float>(workspace + 8) = 5;
  std::vector<CapturedCall> calls;
  for (const bool second : {false, true}) {
    ASSERT_TRUE(capture->open(layout, second));
    ASSERT_TRUE(capture->begin(stream.get(), {}));
    launch(0, slot(0), slot(1), workspace + 8);
    ASSERT_TRUE(capture->end(stream.get()));
    auto call = capture->exported(folder.path());
    ASSERT_TRUE(call) << call.error().reason;
    calls.push_back(std::move(*call));
    capture->close();
  }
  const Result<LaunchPlan> plan = plan_of_captures(calls[0], calls[1]);
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->constants.size(), 1u);
  EXPECT_EQ(plan->constants[0].bytes, 4096u);
  std::uint64_t word = 0;
  std::memcpy(&word, plan->nodes[0].parameters[2].bytes.data(), sizeof word);
  EXPECT_EQ(word, kCandidateBase + kScratchOffset + plan->constants[0].offset + 8);
  cu().MemFree(workspace);
}

TEST_F(Captures, SayWhyThereIsNoPlan) {
  EXPECT_FALSE(capture->end(stream.get())) << "nothing was begun";
  ASSERT_TRUE(capture->open(layout, false));
  ASSERT_TRUE(capture->begin(stream.get(), {}));
  ASSERT_TRUE(capture->end(stream.get()));
  EXPECT_EQ(capture->exported(folder.path()).error().rule, "no-kernel");
  ASSERT_TRUE(capture->begin(stream.get(), {}));
  fake::fail("StreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  const Result<void> ended = capture->end(stream.get());
  ASSERT_FALSE(ended);
  EXPECT_TRUE(contains(ended.error().message, "cannot be captured")) << ended.error().message;
  fake::set_memory(1 << 20);
  EXPECT_EQ(capture->allocate(64u << 20, nullptr), 0u);
  EXPECT_TRUE(capture->short_of_memory());
}

// cuDNN's batch normalization passes some, and does not read it.
TEST_F(Captures, KeepAddressesOfHostMemoryAsNumbers) {
  ASSERT_TRUE(capture->open(layout, false));
  ASSERT_TRUE(capture->begin(stream.get(), {}));
  fake::add_host_memory(0x7fff12345678);
  launch(0, slot(0), slot(1), 0x7fff12345678);
  ASSERT_TRUE(capture->end(stream.get()));
  const auto call = capture->exported(folder.path());
  ASSERT_TRUE(call) << call.error().reason;
}

struct Arenas : Captures {};

TEST_F(Arenas, UseMemoryAgainOnItsStreamOnly) {
  auto arena = Arena::make(cu(), 0, 0x300000000000ull);
  ASSERT_TRUE(arena) << arena.error().text();
  const std::uint64_t a = arena->allocate(1000, nullptr), b = arena->allocate(600, nullptr);
  EXPECT_EQ(a, arena->base());
  EXPECT_EQ(b, a + 1024) << "aligned to 512";
  EXPECT_EQ(arena->find(b + 1023)->address, b);
  EXPECT_EQ(arena->find(b + 1024), nullptr);
  arena->free(a);
  EXPECT_EQ(arena->find(a), nullptr);
  EXPECT_TRUE(arena->contains(a));
  EXPECT_EQ(arena->allocate(512, stream.get()), b + 1024) << "on another stream it may be in use";
  EXPECT_EQ(arena->allocate(512, nullptr), a);
  EXPECT_EQ(arena->allocate(512, nullptr), a + 512) << "the rest";
  arena->free(a);
  arena->free(a + 512);
  EXPECT_EQ(arena->allocate(1024, nullptr), a) << "what lies side by side is one again";
  arena->share(a);
  arena->free(a);
  EXPECT_NE(arena->allocate(1024, nullptr), a) << "another stream may still use it";
  EXPECT_EQ(arena->used(), 3584u);
  arena->free(12345);  // not its own
}

}  // namespace
}  // namespace kernelpro

#endif
