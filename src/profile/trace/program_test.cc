// SPDX-License-Identifier: Apache-2.0
// The tracer library in real processes. Without a GPU, a fake CUPTI supplies the records; with one,
// our own program runs under the real CUPTI.
#include "profile/trace/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/text.h"
#include "profile/inject/trace_format.h"
#include "profile/trace/file.h"

namespace kernelpro {
namespace {

std::string built(const std::string& name) { return join(executable_dir(), name); }

class TraceProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!exists(built("libkernelpro_trace.so"))) {
      GTEST_SKIP() << "built without CUPTI's headers";
    }
    options_.cupti = built("libkernelpro_fake_cupti.so");
    options_.timeout_s = 120;
  }
  Result<TracedProgram> traced(const std::string& how) {
    return trace_program({built("kernelpro-traced"), how}, options_);
  }
  TraceOptions options_;
};

TEST_F(TraceProgram, RecordsComeThrough) {
  const auto result = traced("exit");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  const Trace& trace = result->trace;
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.dropped, 0);
  ASSERT_EQ(trace.kernels.size(), 5u);
  ASSERT_EQ(trace.copies.size(), 5u);
  ASSERT_EQ(trace.memsets.size(), 5u);
  const Trace::Kernel& k = trace.kernels[1];
  EXPECT_EQ(k.name, "_Z3addPKfPfi");
  EXPECT_EQ(k.end - k.start, 20'000);
  EXPECT_EQ(k.start - trace.kernels[0].start, 100'000);
  EXPECT_EQ(k.grid, (std::array<std::uint32_t, 3>{100, 2, 1}));
  EXPECT_EQ(k.block, (std::array<std::uint32_t, 3>{256, 1, 1}));
  EXPECT_EQ(k.registers, 40u);
  EXPECT_EQ(k.dynamic_shared, 1024u);
  EXPECT_EQ(k.stream, 7u);
  EXPECT_EQ(trace.copies[0].kind, Trace::CopyKind::kHostToDevice);
  EXPECT_TRUE(trace.copies[0].pageable);
  EXPECT_FALSE(trace.copies[0].asynchronous);
  EXPECT_EQ(trace.copies[0].bytes, 4096u);
  EXPECT_EQ(trace.memsets[4].bytes, 512u);
  ASSERT_EQ(trace.memory.size(), 3u);  // that of the host does not count
  EXPECT_EQ(summarize(trace).get("trace.allocated_bytes"), 1 << 20);
  // Runtime calls only: driver calls are nested in them.
  ASSERT_EQ(trace.calls.size(), 15u);
  EXPECT_EQ(trace.calls[0].name, "cudaLaunchKernel");
  EXPECT_EQ(trace.calls[0].correlation, trace.kernels[0].correlation);
  EXPECT_EQ(trace.calls[2].name, "cudaDeviceSynchronize");
}

TEST_F(TraceProgram, MachineCodeIsKeptOnce) {
  const TempDir files;
  std::vector<std::string> argv = {built("kernelpro-traced"), "exit"};
  for (const char* name : {"a", "b", "a again"}) {
    argv.push_back(join(files.path(), name));
    ASSERT_TRUE(write_file(argv.back(), name[0] == 'a' ? std::string(100'001, 'x') : "other"));
  }
  const auto kept = [&](const Result<TracedProgram>& traced) {
    std::multiset<std::size_t> sizes;
    for (const std::string& file : traced->code) sizes.insert(read_file(file)->size());
    return sizes;
  };
  const auto traced = trace_program(argv, options_);
  ASSERT_TRUE(traced.has_value()) << traced.error().text();
  EXPECT_EQ(kept(traced), (std::multiset<std::size_t>{5, 100'001}));
  EXPECT_EQ(traced->trace.kernels.size(), 5u);
  EXPECT_TRUE(traced->trace.notes.empty());
  options_.env = {std::string(trace_format::kCodeVariable) + "=1000"};
  const auto limited = trace_program(argv, options_);
  ASSERT_TRUE(limited.has_value()) << limited.error().text();
  EXPECT_EQ(kept(limited), (std::multiset<std::size_t>{5}));
  ASSERT_EQ(limited->trace.notes.size(), 1u);
  EXPECT_TRUE(contains(limited->trace.notes[0], "1 modules")) << limited->trace.notes[0];
  options_.env = {};
  options_.code = false;
  const auto without = trace_program(argv, options_);
  ASSERT_TRUE(without.has_value()) << without.error().text();
  EXPECT_TRUE(without->code.empty());
}

TEST_F(TraceProgram, SamplesOfARunOfTheirOwn) {
  const auto answers = sample_program({built("kernelpro-traced"), "exit"}, options_, 12);
  ASSERT_TRUE(answers.has_value()) << answers.error().text();
  EXPECT_EQ(answers->source, "cupti");
  EXPECT_EQ(answers->period_cycles, 4096);
  EXPECT_EQ(answers->dropped, 2);
  EXPECT_TRUE(answers->missing.empty());
  ASSERT_EQ(answers->kernels.size(), 1u);
  EXPECT_EQ(answers->kernels[0].function, "_Z3addPKfPfi");
  ASSERT_EQ(answers->kernels[0].pcs.size(), 2u);
  EXPECT_EQ(answers->kernels[0].pcs[0].offset, 0);
  EXPECT_EQ(answers->kernels[0].pcs[1].offset, 32);
  const auto& stalls = answers->kernels[0].pcs[1].stalls;
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].stall, Stall::kLongScoreboard);
  EXPECT_EQ(stalls[0].all, 64);
  EXPECT_EQ(stalls[0].exposed, 48);
}

TEST_F(TraceProgram, WithoutSamplesItSaysWhy) {
  const auto refused = sample_program({built("kernelpro-traced"), "refused"}, options_, 12);
  ASSERT_TRUE(refused.has_value()) << refused.error().text();
  EXPECT_TRUE(refused->kernels.empty());
  ASSERT_EQ(refused->missing.size(), 1u);
  EXPECT_EQ(refused->missing[0].family, Family::kSamples);
  EXPECT_TRUE(contains(refused->missing[0].reason, "NVreg_RestrictProfilingToAdminUsers"));
  const auto killed = sample_program({built("kernelpro-traced"), "killed"}, options_, 12);
  ASSERT_TRUE(killed.has_value());
  ASSERT_EQ(killed->missing.size(), 1u);
  EXPECT_TRUE(contains(killed->missing[0].reason, "signal 9")) << killed->missing[0].reason;
}

TEST(TraceSampling, LongerProgramsHaveLongerPeriods) {
  Trace trace;
  EXPECT_EQ(sampling_period_of(trace), 8);
  trace.kernels.resize(1);
  int last = 8;
  for (std::int64_t ns = 1000; ns < 1'000'000'000'000; ns *= 10) {
    trace.kernels[0].end = ns;
    EXPECT_GE(sampling_period_of(trace), last);
    last = sampling_period_of(trace);
  }
  EXPECT_EQ(last, 24) << "100 s";
}

TEST_F(TraceProgram, ManyRecordsFillManyBuffers) {
  const auto result = traced("many");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(result->trace.kernels.size(), 20000u);
  EXPECT_EQ(result->trace.calls.size(), 60000u);
}

TEST_F(TraceProgram, ThreadsKeepTheirCalls) {
  const auto result = traced("threads");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(result->trace.kernels.size(), 400u);
  std::map<std::uint32_t, int> by_thread;
  for (const Trace::Api& call : result->trace.calls) ++by_thread[call.thread];
  ASSERT_EQ(by_thread.size(), 4u);
  for (const auto& [thread, calls] : by_thread) EXPECT_EQ(calls, 300) << thread;
}

TEST_F(TraceProgram, AForkedChildLeavesTheParentsFileAlone) {
  const auto result = traced("fork");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_TRUE(result->exit.ok()) << result->exit.output;
  EXPECT_TRUE(result->trace.complete);
  EXPECT_EQ(result->trace.kernels.size(), 3u);
}

TEST_F(TraceProgram, AKilledProgramLeavesWhatItDid) {
  const auto result = traced("killed");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(result->exit.kind, Exit::Kind::kSignalled);
  EXPECT_EQ(result->trace.kernels.size(), 4u);
  EXPECT_FALSE(result->trace.complete);
  ASSERT_EQ(result->trace.notes.size(), 1u);
  EXPECT_TRUE(contains(result->trace.notes[0], "signal 9")) << result->trace.notes[0];
}

TEST_F(TraceProgram, AHangingProgramLeavesWhatItDid) {
  // It needs some time before it hangs, more on a busy machine.
  for (const double limit_s : {1, 10, 100}) {
    options_.timeout_s = limit_s;
    const auto result = traced("hangs");
    ASSERT_TRUE(result.has_value()) << result.error().text();
    EXPECT_EQ(result->exit.kind, Exit::Kind::kTimedOut);
    if (result->trace.kernels.size() < 4 && limit_s < 100) continue;
    EXPECT_EQ(result->trace.kernels.size(), 4u);
    break;
  }
}

TEST_F(TraceProgram, LostRecordsAreCounted) {
  const auto result = traced("drops");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(result->trace.dropped, 17);
}

TEST_F(TraceProgram, AFileHasALimit) {
  options_.env = {std::string(trace_format::kLimitVariable) + "=100000"};
  const auto result = traced("many");
  ASSERT_TRUE(result.has_value()) << result.error().text();
  const Trace& trace = result->trace;
  EXPECT_GT(trace.dropped, 0);
  EXPECT_GT(trace.kernels.size(), 0u);
  // Six records per iteration, one of them the driver call.
  const auto recorded = trace.kernels.size() + trace.copies.size() + trace.memsets.size();
  EXPECT_GT(trace.dropped + static_cast<std::int64_t>(recorded), 60000);
}

TEST_F(TraceProgram, WithoutCuptiTheRemedyIsSaid) {
  options_.cupti = "/nowhere/libcupti.so";
  const auto result = traced("without");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(result.error().message, "CUPTI")) << result.error().message;
}

TEST_F(TraceProgram, AProgramWithoutCudaIsSaidToBeOne) {
  const auto result = trace_program({"/bin/echo", "hello"}, options_);
  ASSERT_FALSE(result.has_value());
  EXPECT_TRUE(contains(result.error().message, "did not use CUDA")) << result.error().message;
  const auto failed = trace_program({"/bin/sh", "-c", "echo no such file; exit 4"}, options_);
  ASSERT_FALSE(failed.has_value());
  EXPECT_TRUE(contains(failed.error().message, "exit status 4")) << failed.error().message;
  EXPECT_TRUE(contains(failed.error().message, "no such file"));
  EXPECT_FALSE(trace_program({"/nowhere/program"}, options_).has_value());
}

TEST_F(TraceProgram, TheTracerIsSilentWithoutAFolder) {
  Command command;
  command.argv = {built("kernelpro-traced"), "exit"};
  command.env = {"CUDA_INJECTION64_PATH=" + built("libkernelpro_trace.so"),
                 std::string(trace_format::kCuptiVariable) + "=" + options_.cupti};
  command.unset = {trace_format::kFolderVariable};
  const auto exit = run(command);
  ASSERT_TRUE(exit.has_value());
  // The fake never gets callbacks or flush requests.
  EXPECT_TRUE(exit->ok()) << exit->output;
}

// Truncated or corrupt files give a trace, never a crash.
TEST(TraceFile, DamageIsSurvived) {
  std::string bytes;
  const auto put = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  trace_format::FileHead head{};
  std::memcpy(head.magic, trace_format::kMagic, sizeof head.magic);
  head.version = trace_format::kVersion;
  put(head);
  const std::string name = "kernel";
  put(trace_format::RecordHead{trace_format::Kind::kName, 0,
                               static_cast<std::uint32_t>(4 + name.size())});
  put(trace_format::Name{1});
  bytes += name;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    put(trace_format::RecordHead{trace_format::Kind::kKernel, 0, sizeof(trace_format::Kernel)});
    trace_format::Kernel k{};
    k.start = i * 100;
    k.end = i == 3 ? 0 : i * 100 + 50;  // the third was never finished
    k.name = 1;
    put(k);
  }
  Trace whole;
  ASSERT_TRUE(read_trace(bytes, &whole));
  EXPECT_EQ(whole.kernels.size(), 2u);
  EXPECT_EQ(whole.kernels[0].name, "kernel");
  EXPECT_EQ(whole.dropped, 1);
  EXPECT_FALSE(whole.complete);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    Trace trace;
    EXPECT_EQ(read_trace(std::string_view(bytes).substr(0, cut), &trace),
              cut >= sizeof(trace_format::FileHead));
    EXPECT_LE(trace.kernels.size(), 2u);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    Trace trace;
    static_cast<void>(read_trace(damaged, &trace));
    static_cast<void>(summarize(trace));
  }
}

TEST(TraceFile, AFolderWithoutTracesIsAnError) {
  const TempDir folder;
  EXPECT_FALSE(read_trace_folder(folder.path()).has_value());
  ASSERT_TRUE(write_file(join(folder.path(), "1-1.kptrace"), "not a trace").has_value());
  EXPECT_FALSE(read_trace_folder(folder.path()).has_value());
}

constexpr const char* kProgram = R"cuda(
#include <cstdio>
__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
int main() {
  const int n = 1 << 20;
  float *d, *h = new float[n];
  if (cudaMalloc(&d, n * sizeof(float)) != cudaSuccess) return 1;
  for (int i = 0; i < 20; ++i) {
    cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice);
    for (int k = 0; k < 4; ++k) twice<<<n / 256, 256>>>(d, n);
    cudaDeviceSynchronize();
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
)cuda";

// On a machine with a GPU: the real library and the real CUPTI.
TEST(TraceGpu, ARealProgramIsTraced) {
  if (::access("/dev/nvidiactl", R_OK) != 0) GTEST_SKIP() << "no NVIDIA GPU";
  const std::string nvcc = find_cuda_tool("nvcc");
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc";
  if (!exists(built("libkernelpro_trace.so"))) GTEST_SKIP() << "built without CUPTI's headers";
  const TempDir folder;
  const std::string source = join(folder.path(), "program.cu");
  ASSERT_TRUE(write_file(source, kProgram).has_value());
  const std::string program = join(folder.path(), "program");
  Command compile;
  compile.argv = {nvcc, "-arch=native", "-o", program, source};
  const auto compiled = run(compile);
  if (!compiled.has_value() || !compiled->ok()) GTEST_SKIP() << "no GPU for -arch=native";
  Command untraced;
  untraced.argv = {program};
  const auto ran = run(untraced);
  if (!ran.has_value() || !ran->ok()) GTEST_SKIP() << "no GPU that it may use";
  const auto result = trace_program({program}, TraceOptions());
  ASSERT_TRUE(result.has_value()) << result.error().text();
  const Trace& trace = result->trace;
  EXPECT_EQ(trace.kernels.size(), 80u);
  EXPECT_EQ(trace.copies.size(), 20u);
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.dropped, 0);
  const Evidence e = summarize(trace);
  std::printf("%s\n%s\n", e.texts.at("trace").c_str(), evidence_to_json(e).c_str());
  EXPECT_DOUBLE_EQ(e.get("trace.kernels").value_or(0), 4);
  EXPECT_DOUBLE_EQ(e.get("trace.copies_host").value_or(0), 1);
  EXPECT_DOUBLE_EQ(e.get("trace.copies_pageable").value_or(0), 1);
  EXPECT_DOUBLE_EQ(e.get("trace.syncs").value_or(0), 1);
  EXPECT_GT(e.get("trace.periods").value_or(0), 10);
  EXPECT_GT(e.get("trace.gaps_sync").value_or(0), 0);
  ASSERT_EQ(e.kernels.size(), 1u);
  EXPECT_EQ(e.kernels[0].name, "twice(float*, int)");
}

}  // namespace
}  // namespace kernelpro
