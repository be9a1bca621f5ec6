// SPDX-License-Identifier: Apache-2.0
#include "profile/collect/collect.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "core/evidence/metrics.h"
#include "core/evidence/rates.h"
#include "profile/code/disassemble.h"

namespace kernelpro {
namespace {

Task vector_task(DType dtype) {
  Task task;
  task.name = "t";
  task.tensors.push_back({"x", Role::kInput, dtype, {"n"}, {}, 0});
  task.tensors.push_back({"y", Role::kOutput, dtype, {"n"}, {}, 0});
  task.cases.push_back({"large", {{"n", 1000}}, true, {}});
  task.flops = "10*n";
  task.matmul_flops = "8*n";
  return task;
}

Machine machine() {
  Machine m;
  m.parallel_units = 2;
  m.ceilings = {8e9, 1e9, 16e9, "made up"};
  return m;
}

Evaluation correct(double us) {
  Correct c;
  c.timings.push_back({"large", us, us - 1, us + 1, 10, "calls in turn"});
  c.observed = {{"cpu.threads_busy", 1.5}, {"cpu.perf.ipc", 2.5}, {"nobody.knows", 1}};
  Evaluation e;
  e.outcome = c;
  return e;
}

// In the task's first case, as it is shown: at the machine's ceilings.
Evidence shown(const Task& task, const Machine& on, const Binary& binary,
               const Evaluation& evaluation) {
  return at_ceilings(on, collect_evidence(task, task.cases[0], on, binary, evaluation));
}

// They are the machine's, which may be measured again.
TEST(Collect, CeilingsAreNoObservationsOfTheCandidate) {
  const Task task = vector_task(DType::kFp32);
  const Evidence e = collect_evidence(task, task.cases[0], machine(), {}, correct(100));
  for (const Metric& metric : metrics_of(Family::kCeilings)) {
    EXPECT_FALSE(e.get(std::string(metric.name))) << metric.name;
  }
  EXPECT_EQ(why_missing(e, "ceiling.copy_bandwidth"), nullptr);
}

TEST(Collect, TheoryCeilingsAndTiming) {
  const Task task = vector_task(DType::kFp32);
  const Evidence e = shown(task, machine(), {}, correct(100));
  EXPECT_DOUBLE_EQ(*e.get("task.compulsory_bytes"), 8000);
  EXPECT_DOUBLE_EQ(*e.get("task.half_inputs"), 0);
  EXPECT_DOUBLE_EQ(*e.get("roofline.memory_floor"), 1);    // 8000 bytes at 8 GB/s
  EXPECT_DOUBLE_EQ(*e.get("roofline.compute_floor"), 10);  // 10000 at 1 GFLOP/s
  EXPECT_DOUBLE_EQ(*e.get("timing.median"), 100);
  EXPECT_DOUBLE_EQ(*e.get("roofline.achieved_bandwidth"), 8e7);
  EXPECT_DOUBLE_EQ(*e.get("roofline.achieved_flops"), 1e8);
  EXPECT_DOUBLE_EQ(*e.get("cpu.threads_busy"), 1.5);
  EXPECT_EQ(e.find("cpu.perf.ipc")->level, Level::kCounters);
  ASSERT_EQ(e.missing().size(), 1u);  // nothing was compiled
  EXPECT_EQ(e.missing()[0].family, Family::kHostCode);
}

TEST(Collect, MatrixProductsOfHalvesCountAtTheTensorRate) {
  const Task task = vector_task(DType::kBf16);
  const Evidence e = shown(task, machine(), {}, correct(100));
  EXPECT_DOUBLE_EQ(*e.get("task.half_inputs"), 1);
  EXPECT_DOUBLE_EQ(*e.get("roofline.compute_floor"), 2.5);  // 2 at the FMA rate, 0.5 at the tensor
}

TEST(Collect, Tf32CountsAtHalfOfTheTensorRate) {
  Task task = vector_task(DType::kFp32);
  const Evidence strict = shown(task, machine(), {}, correct(100));
  EXPECT_FALSE(strict.get("task.tf32"));
  task.precision = Precision::kTf32;
  const Evidence e = shown(task, machine(), {}, correct(100));
  EXPECT_DOUBLE_EQ(*e.get("task.tf32"), 1);
  EXPECT_DOUBLE_EQ(*e.get("roofline.compute_floor"), 3);  // 2 at the FMA rate, 1 at TF32's
  EXPECT_GT(*strict.get("roofline.compute_floor"), 3);
}

// PyTorch's own kernels are unavailable, but the call's place under the ceilings is known.
TEST(Collect, AModuleHasARoofline) {
  const Task task = vector_task(DType::kFp32);
  Binary module;
  module.form = Binary::Form::kModule;
  const Evidence e = shown(task, machine(), module, correct(100));
  EXPECT_TRUE(e.get("roofline.memory_floor"));
  EXPECT_TRUE(e.get("timing.median"));
  for (const char* name : {"plan.kernels", "launch__grid_size", "ptxas.spill_load_bytes",
                           "sass.instructions", "smsp__inst_executed.sum"}) {
    ASSERT_NE(why_missing(e, name), nullptr) << name;
    EXPECT_NE(why_missing(e, name)->reason.find("PyTorch"), std::string::npos);
  }
  EXPECT_EQ(why_missing(e, "cpu.threads_busy"), nullptr);
}

// A start in PyTorch whose call was captured: its kernels are those of libraries, each launched by
// an operator.
TEST(Collect, ACapturedModuleHasKernelsAndOperators) {
  const Task task = vector_task(DType::kFp32);
  Binary binary;
  binary.form = Binary::Form::kModule;
  binary.module = "model.py";
  CallFacts call;
  for (const char* function : {"gemm", "relu", "relu"}) {
    PlanNode& node = call.plan.nodes.emplace_back();
    node.kind = PlanNode::Kind::kKernel;
    node.function = function;
    node.image = function[0] == 'g' ? 0 : 1;
    node.grid = {4, 1, 1};
    node.block = {128, 1, 1};
  }
  call.plan.edges = {{0, 1, 0, 0, 0}, {1, 2, 0, 0, 0}};
  call.images = {"/nowhere/gemm.cubin", "/nowhere/relu.cubin"};
  OperatorCall product, first, second;
  product.name = "addmm", product.where = "fc1 (Linear)", product.nodes = 1;
  first.name = "relu", first.first = 1, first.nodes = 1;
  second.name = "relu_", second.first = 2, second.nodes = 1;
  call.operators = {product, first, second};
  call.counters.source = "cupti";
  call.counters.launches = {{"gemm", 0, {{"gpu__time_duration.sum", 6000}}},
                            {"relu", 1, {{"gpu__time_duration.sum", 1000}}},
                            {"relu", 2, {{"gpu__time_duration.sum", 3000}}}};
  const Evidence e = collect_evidence(task, task.cases[0], machine(), binary, correct(100), call);
  ASSERT_EQ(e.kernels.size(), 2u);
  EXPECT_EQ(e.kernels[0].name, "gemm");
  EXPECT_DOUBLE_EQ(*e.kernels[0].facts.get("kernel.share"), 0.6);
  EXPECT_EQ(e.kernels[0].facts.texts.at("operator"), "`addmm` (fc1)");
  EXPECT_EQ(e.kernels[1].facts.texts.at("operator"), "`relu_` and 1 more");
  EXPECT_DOUBLE_EQ(*e.get("plan.kernels"), 3);
  ASSERT_EQ(e.operators.size(), 3u);
  EXPECT_DOUBLE_EQ(e.operators[0].us, 6);
  EXPECT_DOUBLE_EQ(e.operators[2].us, 3);
  EXPECT_NE(why_missing(e, "sass.instructions"), nullptr);

  call.counters.launches.pop_back();
  const Evidence some =
      collect_evidence(task, task.cases[0], machine(), binary, correct(100), call);
  EXPECT_EQ(some.operators[2].us, 0) << "not timed";
  const Evidence host = collect_evidence(task, task.cases[0], machine(), binary, correct(100));
  EXPECT_TRUE(host.kernels.empty());
  EXPECT_NE(why_missing(host, "plan.kernels"), nullptr);
}

// The code of a captured module lies in several images, of which each holds one of its kernels.
TEST(Collect, ACapturedModuleHasTheCodeOfItsImages) {
  const std::string nvcc = find_cuda_tool("nvcc");
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc here";
  TempDir dir;
  CallFacts call;
  for (const char* function : {"twice", "thrice"}) {
    const std::string source = join(dir.path(), std::string(function) + ".cu");
    ASSERT_TRUE(
        write_file(source, "extern \"C\" __global__ void " + std::string(function) +
                               "(float* x) { __shared__ float s[64]; s[threadIdx.x] = x[0]; "
                               "__syncthreads(); x[threadIdx.x] = 2 * s[63]; }\n"));
    const std::string image = join(dir.path(), std::string(function) + ".cubin");
    Command command;
    command.argv = {nvcc, "-cubin", "-arch=sm_90a", "-o", image, source};
    command.limits.wall_seconds = 120;
    const Result<Exit> done = run(command);
    ASSERT_TRUE(done && done->ok()) << (done ? done->output : done.error().text());
    PlanNode& node = call.plan.nodes.emplace_back();
    node.kind = PlanNode::Kind::kKernel;
    node.function = function;
    node.image = static_cast<int>(call.images.size());
    node.grid = {4, 1, 1};
    node.block = {64, 1, 1};
    call.images.push_back(image);
  }
  call.plan.edges = {{0, 1, 0, 0, 0}};
  Binary binary;
  binary.form = Binary::Form::kModule;
  binary.module = "model.py";
  const Task task = vector_task(DType::kFp32);
  const Evidence e = collect_evidence(task, task.cases[0], machine(), binary, correct(100), call);
  ASSERT_EQ(e.kernels.size(), 2u);
  const bool disassembles =
      !find_cuda_tool("nvdisasm").empty() || !find_cuda_tool("cuobjdump").empty();
  for (const KernelEvidence& kernel : e.kernels) {
    EXPECT_GT(kernel.facts.get("launch__registers_per_thread").value_or(0), 0) << kernel.name;
    EXPECT_EQ(kernel.facts.get("ptxas.shared_bytes").value_or(0), 256) << kernel.name;
    EXPECT_FALSE(kernel.facts.get("ptxas.spill_store_bytes")) << "unknown, of a library's code";
    EXPECT_EQ(kernel.facts.get("sass.instructions").value_or(0) > 0, disassembles);
  }
}

TEST(Collect, SaysWhatIsMissingAndWhatToDo) {
  const Task task = vector_task(DType::kFp32);
  Evaluation wrong;
  wrong.outcome = CompileError{"no"};
  Machine bare;
  const Evidence e = shown(task, bare, {}, wrong);
  EXPECT_FALSE(e.get("timing.median"));
  EXPECT_FALSE(e.get("roofline.memory_floor"));
  EXPECT_GE(e.missing().size(), 4u);
  for (const Missing& m : e.missing()) {
    EXPECT_FALSE(m.reason.empty() || m.next.empty()) << missing_names(m).at(0);
  }
  for (const char* name : {"timing.median", "ceiling.copy_bandwidth", "ceiling.fma_rate",
                           "roofline.memory_floor", "cpu.asm.hot.packed_fp"}) {
    EXPECT_NE(why_missing(e, name), nullptr) << name;
  }
}

// A library's kernel: ptxas said nothing about it, and so its occupancy is not known.
TEST(Collect, TheDriverFillsGapsOfTheOnlyKernel) {
  const Task task = vector_task(DType::kFp32);
  Binary binary;
  binary.form = Binary::Form::kPlanForm;
  PlanNode& node = binary.plan.nodes.emplace_back();
  node.kind = PlanNode::Kind::kKernel;
  node.function = "relu";
  node.grid = {64, 1, 1};
  node.block = {256, 1, 1};
  Evaluation evaluation = correct(100);
  std::get<Correct>(evaluation.outcome).observed["launch__waves_per_multiprocessor"] = 2;
  const Evidence one = collect_evidence(task, task.cases[0], machine(), binary, evaluation);
  ASSERT_EQ(one.kernels.size(), 1u);
  const Observation* waves = one.kernels[0].facts.find("launch__waves_per_multiprocessor");
  ASSERT_NE(waves, nullptr);
  EXPECT_EQ(waves->value, 2);
  EXPECT_EQ(waves->source, "driver");

  binary.plan.nodes.push_back(binary.plan.nodes[0]);
  binary.plan.nodes[1].function = "gemm";
  const Evidence two = collect_evidence(task, task.cases[0], machine(), binary, evaluation);
  ASSERT_EQ(two.kernels.size(), 2u);
  for (const KernelEvidence& kernel : two.kernels) {
    EXPECT_FALSE(kernel.facts.get("launch__waves_per_multiprocessor")) << "of which one?";
  }
}

TEST(Collect, WhatIsMeasuredLaterIsNoLongerMissing) {
  const Task task = vector_task(DType::kFp32);
  const Machine bare;
  Evidence e = collect_evidence(task, task.cases[0], bare, {}, correct(100));
  set_ceilings(bare, &e);
  EXPECT_EQ(std::count_if(e.missing().begin(), e.missing().end(),
                          [](const Missing& m) { return m.family == Family::kCeilings; }),
            2);
  set_ceilings(machine(), &e);
  for (const char* name : {"ceiling.copy_bandwidth", "ceiling.fma_rate", "roofline.memory_floor",
                           "roofline.compute_floor"}) {
    EXPECT_TRUE(e.get(name)) << name;
    EXPECT_EQ(why_missing(e, name), nullptr) << name;
  }
  ASSERT_EQ(e.missing().size(), 1u);  // other families stay
  EXPECT_EQ(e.missing()[0].family, Family::kHostCode);
}

TEST(Collect, ReadsARealSharedObjectAndKeepsTheText) {
  TempDir dir;
  const std::string so = join(dir.path(), "k.so");
  ASSERT_TRUE(write_file(join(dir.path(), "k.cpp"),
                         "extern \"C\" void launch(float* y, long n) {"
                         "  for (long i = 0; i < n; ++i) y[i] = y[i] * 2.0f; }"));
  Command compile;
  compile.argv = {"g++", "-O3", "-march=x86-64-v3", "-shared", "-fPIC", join(dir.path(), "k.cpp"),
                  "-o",  so};
  ASSERT_TRUE(run(compile)->ok());
  Binary binary;
  binary.shared_object = so;
  const Task task = vector_task(DType::kFp32);
  const Evidence e = collect_evidence(task, task.cases[0], machine(), binary, correct(100));
  EXPECT_GE(e.get("cpu.asm.hot.packed_fp").value_or(0), 1);
  EXPECT_FALSE(e.texts.contains("arch")) << "only a GPU's instructions depend on it";
  EXPECT_EQ(e.get("cpu.asm.hot.vector_bits").value_or(0), 256);
  EXPECT_TRUE(e.missing().empty());
  EXPECT_TRUE(exists(so + ".objdump.txt"));
  // The cached text suffices once the tool no longer finds the file.
  ASSERT_TRUE(run({{"truncate", "-s", "0", so}, "", {}, {}, {}, {}})->ok());
  ASSERT_TRUE(run({{"touch", "-d", "2000-01-01", so}, "", {}, {}, {}, {}})->ok());
  EXPECT_TRUE(disassemble_host(so));
  ASSERT_TRUE(run({{"touch", so}, "", {}, {}, {}, {}})->ok());
  EXPECT_FALSE(disassemble_host(so)) << "an outdated text was used";
}

// With the recorded text beside the cubin, reading it needs no CUDA toolkit.
TEST(Collect, ReadsSassAndPtxas) {
  TempDir dir;
  const std::string cubin = join(dir.path(), "k.cubin");
  const std::string fixtures = std::string(KERNELPRO_SOURCE_DIR) + "/src/profile/fixtures/";
  ASSERT_TRUE(write_file(cubin, ""));
  ASSERT_TRUE(write_file(cubin + ".sass.txt", "tool: nvdisasm -c -hex -gi\n" +
                                                  *read_file(fixtures + "sm_90a.nvdisasm.txt")));
  // The text is only used if a disassembler is installed; a stand-in is enough.
  const std::string tool = join(dir.path(), "nvdisasm");
  ASSERT_TRUE(write_file(tool, "#!/bin/sh\nexit 1\n"));
  ASSERT_TRUE(run({{"chmod", "+x", tool}, "", {}, {}, {}, {}})->ok());
  const std::string path = getenv("PATH");
  setenv("PATH", (dir.path() + ":" + path).c_str(), 1);
  Binary binary;
  binary.form = Binary::Form::kPlanForm;
  binary.cubin = cubin;
  binary.resources["copy128"] = {40, 0, 0, 0, 16};
  PlanNode node;
  node.kind = PlanNode::Kind::kKernel;
  node.function = "copy128";
  node.grid = {10, 2, 1};
  node.block = {128, 1, 1};
  binary.plan.nodes = {node};
  const Task task = vector_task(DType::kFp32);
  Machine gpu = machine();
  gpu.target = "cuda";
  gpu.arch = "sm_90a";
  Evaluation evaluation = correct(100);
  // As in verdicts of earlier versions, of any case.
  auto& observed = std::get<Correct>(evaluation.outcome).observed;
  observed["plan.kernels"] = 7;
  observed["plan.handover_bytes"] = 266e6;
  observed["launch__grid_size"] = 33;
  const Evidence e = collect_evidence(task, task.cases[0], gpu, binary, evaluation);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(e.texts.at("arch"), "sm_90a");
  ASSERT_EQ(e.kernels.size(), 1u);  // the fixture's other kernels are not launched
  const Evidence& kernel = e.kernels[0].facts;
  EXPECT_EQ(e.kernels[0].name, "copy128");
  EXPECT_EQ(kernel.texts.at("kernel"), "copy128");
  EXPECT_EQ(kernel.get("sass.hot.global_loads_128").value_or(0), 4);
  EXPECT_EQ(kernel.get("launch__registers_per_thread").value_or(0), 40);
  EXPECT_EQ(kernel.get("launch__grid_size").value_or(0), 20);
  EXPECT_EQ(kernel.get("launch__block_size").value_or(0), 128);
  EXPECT_EQ(kernel.get("launch__occupancy_limit_registers").value_or(0), 12);
  EXPECT_EQ(kernel.get("sm__maximum_warps_per_active_cycle_pct").value_or(0), 75);
  EXPECT_EQ(kernel.find("sass.hot.ffma")->source, "nvdisasm");
  EXPECT_FALSE(e.get("launch__grid_size")) << "a kernel's fact stands for the call";
  EXPECT_EQ(e.get("plan.kernels").value_or(0), 1);
  EXPECT_EQ(e.get("plan.handover_bytes").value_or(-1), 0);
}

}  // namespace
}  // namespace kernelpro
