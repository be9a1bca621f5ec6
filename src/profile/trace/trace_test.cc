// SPDX-License-Identifier: Apache-2.0
#include "profile/trace/trace.h"

#include <gtest/gtest.h>

#include "core/evidence/metrics.h"

namespace kernelpro {
namespace {

constexpr std::int64_t kUs = 1000;

// Builds a trace as a program would: the host issues each operation, the GPU runs it.
class Script {
 public:
  // Issued at `asked`, runs from `start` to `end`, in microseconds.
  void kernel(const std::string& name, double asked, double start, double end,
              std::uint32_t stream = 1) {
    call("cudaLaunchKernel", asked, asked + 3);
    Trace::Kernel k;
    k.name = name;
    k.start = at(start);
    k.end = at(end);
    k.correlation = correlation_;
    k.stream = stream;
    k.grid = {100, 1, 1};
    k.block = {256, 1, 1};
    trace.kernels.push_back(k);
  }
  void copy(Trace::CopyKind kind, std::uint64_t bytes, double asked, double start, double end) {
    call("cudaMemcpyAsync", asked, asked + 3);
    Trace::Copy c;
    c.kind = kind;
    c.bytes = bytes;
    c.start = at(start);
    c.end = at(end);
    c.correlation = correlation_;
    trace.copies.push_back(c);
  }
  void call(const std::string& name, double start, double end) {
    Trace::Api api;
    api.name = name;
    api.start = at(start);
    api.end = at(end);
    api.correlation = ++correlation_;
    trace.calls.push_back(api);
  }
  static std::int64_t at(double us) { return static_cast<std::int64_t>(us * kUs) + 1'000'000'000; }

  Trace trace;

 private:
  std::uint32_t correlation_ = 0;
};

double metric(const Evidence& evidence, const std::string& name) {
  EXPECT_NE(find_metric(name), nullptr) << name;
  EXPECT_TRUE(evidence.get(name).has_value()) << name;
  return evidence.get(name).value_or(-1);
}

TEST(Trace, NamesOfCallsAreUnderstood) {
  EXPECT_EQ(api_base_name("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(api_base_name("cuMemcpyHtoDAsync_v2_ptsz"), "cuMemcpyHtoDAsync");
  EXPECT_EQ(api_base_name("cudaMalloc3D"), "cudaMalloc3D");
  const std::pair<const char*, ApiClass> expected[] = {
      {"cudaLaunchKernelExC", ApiClass::kLaunch},
      {"cuGraphLaunch", ApiClass::kLaunch},
      {"cudaLaunchHostFunc", ApiClass::kOther},
      {"cuStreamSynchronize", ApiClass::kSync},
      {"cudaEventSynchronize", ApiClass::kSync},
      {"cudaMemcpy", ApiClass::kCopy},
      {"cuMemsetD32Async", ApiClass::kCopy},
      {"cudaMallocAsync", ApiClass::kPool},
      {"cuMemAllocFromPoolAsync", ApiClass::kPool},
      {"cudaMalloc", ApiClass::kAllocate},
      {"cudaFreeHost", ApiClass::kAllocate},
      {"cuMemFree", ApiClass::kAllocate},
      {"cuMemHostAlloc", ApiClass::kAllocate},
      {"cuGraphInstantiateWithFlags", ApiClass::kOther},
      {"cudaGraphMemcpyNodeGetParams", ApiClass::kOther},
      {"cudaGetLastError", ApiClass::kOther},
  };
  for (const auto& [name, what] : expected) EXPECT_EQ(api_class(name), what) << name;
}

TEST(Trace, BusyTimeIsAUnionOverStreams) {
  Script s;
  s.kernel("a", 0, 10, 30, 1);
  s.kernel("b", 1, 20, 50, 2);
  s.kernel("a", 2, 60, 70, 1);
  s.trace.sort();
  const Evidence e = summarize(s.trace);
  EXPECT_DOUBLE_EQ(metric(e, "trace.span"), 60);
  EXPECT_DOUBLE_EQ(metric(e, "trace.busy"), 50);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps"), 10);
  EXPECT_DOUBLE_EQ(metric(e, "trace.overlap"), 10);
  EXPECT_DOUBLE_EQ(metric(e, "trace.kernel_median"), 20);
  EXPECT_DOUBLE_EQ(metric(e, "trace.streams"), 2);
  EXPECT_DOUBLE_EQ(metric(e, "trace.periods"), 0);
  ASSERT_EQ(e.kernels.size(), 2u);
  EXPECT_EQ(e.kernels[0].name, "a");
  EXPECT_DOUBLE_EQ(*e.kernels[0].facts.get("kernel.share"), 0.5);
  EXPECT_DOUBLE_EQ(*e.kernels[0].facts.get("kernel.launches"), 2);
  EXPECT_DOUBLE_EQ(*e.kernels[0].facts.get("kernel.concurrent"), 1);
  EXPECT_DOUBLE_EQ(*e.kernels[0].facts.get("launch__grid_size"), 100);
}

TEST(Trace, TheMedianOfTwoLiesBetweenThem) {
  Script s;
  s.kernel("a", 0, 10, 30);
  s.kernel("b", 31, 40, 50);
  s.trace.sort();
  EXPECT_DOUBLE_EQ(metric(summarize(s.trace), "trace.kernel_median"), 15);
}

TEST(Trace, GapsAreSortedByWhatCausedThem) {
  Script s;
  s.kernel("a", 0, 10, 20);
  s.kernel("a", 3, 22, 30);  // was in the queue: 2 us
  s.call("cudaStreamSynchronize", 6, 33);
  s.kernel("a", 34, 40, 50);  // after a wait: 10 us
  s.kernel("a", 55, 60, 70);  // late: 10 us
  s.call("cudaMalloc", 66, 95);
  s.kernel("a", 96, 100, 110);  // after an allocation: 30 us
  s.trace.sort();
  const Evidence e = summarize(s.trace);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps"), 52);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps_queue"), 2);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps_sync"), 10);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps_launch"), 10);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps_allocation"), 30);
  EXPECT_DOUBLE_EQ(metric(e, "trace.longest_gap"), 30);
  EXPECT_DOUBLE_EQ(metric(e, "trace.syncs"), 1);
  EXPECT_DOUBLE_EQ(metric(e, "trace.allocations"), 1);
}

TEST(Trace, TimeThatTheProfilerTookIsNoGap) {
  Script s;
  s.kernel("a", 0, 10, 20);
  s.kernel("a", 100, 120, 130);
  s.trace.overheads.push_back({Script::at(30), Script::at(90)});
  s.trace.sort();
  const Evidence e = summarize(s.trace);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps"), 40);
  EXPECT_DOUBLE_EQ(metric(e, "trace.span"), 60);
}

// Set-up, ten iterations of three kernels that end in a wait, and some work at the end.
Trace program() {
  Script s;
  s.copy(Trace::CopyKind::kHostToDevice, 1 << 20, 0, 10, 500);
  s.call("cudaMalloc", 500, 900);
  s.kernel("init", 900, 910, 1000);
  for (int i = 0; i < 10; ++i) {
    const double t = 2000 + 100 * i + (i == 0 ? -500 : 0);  // the first is late
    s.kernel("_Z3fooPf", t, t + 10, t + 30);
    s.kernel("_Z3fooPf", t + 3, t + 32, t + 52);
    s.kernel("bar", t + 6, t + 54, t + 70);
    s.call("cudaDeviceSynchronize", t + 9, t + 72);
  }
  s.kernel("check", 3000, 3010, 3400);
  s.trace.sort();
  return s.trace;
}

TEST(Trace, TheSteadyStateIsWhatRepeats) {
  const Trace trace = program();
  const TraceWindow window = select_window(trace);
  EXPECT_TRUE(window.steady);
  EXPECT_EQ(window.periods, 8);  // without the first, and up to the start of the last
  const Evidence e = summarize(trace);
  EXPECT_DOUBLE_EQ(metric(e, "trace.periods"), 8);
  EXPECT_DOUBLE_EQ(metric(e, "trace.span"), 100);
  EXPECT_DOUBLE_EQ(metric(e, "trace.kernels"), 3);
  EXPECT_DOUBLE_EQ(metric(e, "trace.busy"), 56);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps_sync"), 40);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps_queue"), 4);
  EXPECT_DOUBLE_EQ(metric(e, "trace.syncs"), 1);
  EXPECT_DOUBLE_EQ(metric(e, "trace.copies_host"), 0);
  EXPECT_DOUBLE_EQ(metric(e, "trace.allocations"), 0);
  ASSERT_EQ(e.kernels.size(), 2u);
  EXPECT_EQ(e.kernels[0].name, "foo(float*)");
  EXPECT_DOUBLE_EQ(*e.kernels[0].facts.get("kernel.launches"), 2);
}

// A single kernel launched repeatedly fits any period: the shortest is right.
TEST(Trace, OneRepeatedKernelIsAPeriodOfOne) {
  Script s;
  for (int i = 0; i < 200; ++i) s.kernel("tiny", 5 * i, 5 * i + 4, 5 * i + 6);
  s.trace.sort();
  const Evidence e = summarize(s.trace);
  EXPECT_DOUBLE_EQ(metric(e, "trace.kernels"), 1);
  EXPECT_DOUBLE_EQ(metric(e, "trace.periods"), 198);
  EXPECT_DOUBLE_EQ(metric(e, "trace.span"), 5);
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps_launch"), 3);
}

// The copies of a check at the end repeat more often than the work, and even between its steps.
TEST(Trace, TheWorkIsWhatKernelsDo) {
  Script s;
  double t = 0;
  for (int i = 0; i < 20; ++i, t += 100) s.kernel("work", t, t + 5, t + 95);
  for (int i = 0; i < 100; ++i, t += 30) {
    s.copy(Trace::CopyKind::kDeviceToHost, 4096, t, t + 5, t + 7);
  }
  s.trace.sort();
  const Evidence e = summarize(s.trace);
  EXPECT_DOUBLE_EQ(metric(e, "trace.kernels"), 1);
  EXPECT_DOUBLE_EQ(metric(e, "trace.periods"), 18);
  EXPECT_DOUBLE_EQ(metric(e, "trace.copies_host"), 0);
  EXPECT_DOUBLE_EQ(metric(e, "timing.median"), 100);
}

TEST(Trace, WhatHappensOnceIsTheWholeTrace) {
  Script s;
  for (const char* name : {"a", "b", "c", "d", "a", "e"}) {
    const double t = 100.0 * static_cast<double>(s.trace.kernels.size());
    s.kernel(name, t, t + 10, t + 60);
  }
  s.trace.sort();
  const TraceWindow window = select_window(s.trace);
  EXPECT_FALSE(window.steady);
  EXPECT_DOUBLE_EQ(metric(summarize(s.trace), "trace.kernels"), 6);
  EXPECT_FALSE(summarize(s.trace).get("timing.median"));
}

TEST(Trace, NamedRangesHoldWhatWasLaunchedInThem) {
  Script s;
  for (int i = 0; i < 3; ++i) {
    const double t = 1000.0 * i;
    s.trace.ranges.push_back({"step", Script::at(t), Script::at(t + 20), 0, 0});
    s.kernel("a", t + 1, t + 100, t + 150);  // runs after its range has ended
    s.kernel("b", t + 5, t + 160, t + 200);
    s.kernel("outside", t + 30, t + 300, t + 900);
  }
  s.trace.sort();
  Evidence e;
  summarize(s.trace, select_window(s.trace, "step"), &e);
  EXPECT_DOUBLE_EQ(metric(e, "trace.periods"), 2);  // the first is warm-up
  EXPECT_DOUBLE_EQ(metric(e, "trace.kernels"), 2);
  EXPECT_DOUBLE_EQ(metric(e, "trace.span"), 100);
  Evidence none;
  summarize(s.trace, select_window(s.trace, "no such"), &none);
  EXPECT_FALSE(none.get("trace.span").has_value());
  EXPECT_EQ(none.missing().size(), 1u);
}

TEST(Trace, TheBusiestDeviceCounts) {
  Script s;
  s.kernel("a", 0, 10, 100);
  s.kernel("b", 1, 200, 210);
  s.trace.kernels.back().device = 1;
  s.trace.sort();
  EXPECT_DOUBLE_EQ(metric(summarize(s.trace), "trace.kernels"), 1);
}

TEST(Trace, WithoutCallsTheHostIsUnknownNotSilent) {
  Script s;
  s.kernel("a", 0, 10, 20);
  s.kernel("b", 1, 30, 40);
  s.trace.calls.clear();
  const Evidence e = summarize(s.trace);
  EXPECT_FALSE(e.get("trace.syncs").has_value());
  EXPECT_DOUBLE_EQ(metric(e, "trace.gaps_unknown"), 10);
  EXPECT_FALSE(e.missing().empty());
  EXPECT_TRUE(summarize(Trace()).items().empty());
}

}  // namespace
}  // namespace kernelpro
