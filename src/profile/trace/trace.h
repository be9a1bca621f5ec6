// SPDX-License-Identifier: Apache-2.0
// A timeline of what a program did on the GPU and in the CUDA API, and what it says about the
// system level. Filled by our tracer (profile/trace/program.h) or from an nsys export.
// All times are nanoseconds of one clock, whatever its zero. Everything here is pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence.h"

namespace kernelpro {

struct Trace {
  // What a member is not known to be stays at its default; nothing is made up.
  struct Kernel {
    std::string name;  // mangled or demangled
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint32_t correlation = 0;  // of the API call that launched it; a graph's kernels share one
    std::uint32_t stream = 0;
    std::uint32_t device = 0;
    std::uint64_t graph_node = 0;  // 0: launched by itself
    std::uint32_t graph = 0;       // 0: launched by itself
    std::array<std::uint32_t, 3> grid{0, 0, 0};
    std::array<std::uint32_t, 3> block{0, 0, 0};
    std::array<std::uint32_t, 3> cluster{0, 0, 0};  // 0: none
    std::uint32_t registers = 0;                    // per thread
    std::uint32_t static_shared = 0;                // bytes
    std::uint32_t dynamic_shared = 0;               // bytes
    std::uint32_t local_bytes = 0;                  // per thread
    std::uint32_t process = 0;
  };
  enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice, kHostToHost, kOther };
  struct Copy {
    CopyKind kind = CopyKind::kOther;
    bool pageable = false;  // one end is pageable host memory
    bool asynchronous = false;
    std::uint64_t bytes = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint32_t correlation = 0;
    std::uint32_t stream = 0;
    std::uint32_t device = 0;
    std::uint64_t graph_node = 0;
    std::uint32_t process = 0;
  };
  struct Memset {
    std::uint64_t bytes = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint32_t correlation = 0;
    std::uint32_t stream = 0;
    std::uint32_t device = 0;
    std::uint64_t graph_node = 0;
    std::uint32_t process = 0;
  };
  // Calls on the host: runtime or driver API, the outermost only ("cudaLaunchKernel", not the
  // driver's cuLaunchKernel within it). Without version suffixes: "cudaMemcpyAsync".
  struct Api {
    std::string name;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint32_t correlation = 0;
    std::uint32_t thread = 0;
    std::uint32_t process = 0;
  };
  // A named range that the program marked itself (NVTX).
  struct Range {
    std::string name;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint32_t thread = 0;
    std::uint32_t process = 0;
  };

  std::vector<Kernel> kernels;
  std::vector<Copy> copies;
  std::vector<Memset> memsets;
  std::vector<Api> calls;
  std::vector<Range> ranges;
  // When the profiler itself held the program up: start and end.
  std::vector<std::array<std::int64_t, 2>> overheads;
  std::int64_t dropped = 0;        // records that were lost
  bool complete = true;            // false: the program ended before the last records were written
  std::string source;              // "CUPTI activity", "nsys export"
  std::vector<std::string> notes;  // what a reader must know: a process without its records, ...

  bool empty() const { return kernels.empty() && copies.empty() && memsets.empty(); }
  // By start time; readers call it once when they are done.
  void sort();
};

// What an API call is to us, by its name, of the runtime and the driver alike.
enum class ApiClass {
  kOther,
  kLaunch,    // kernels and graphs
  kCopy,      // copies and memsets; those without Async wait for the device
  kSync,      // waits for the device, a stream or an event
  kAllocate,  // cudaMalloc, cudaFree, cudaHostAlloc: the ones that may wait for the device
  kPool,      // cudaMallocAsync, cudaFreeAsync: ordered in a stream, cheap
};
ApiClass api_class(std::string_view name);
// "cuMemcpyHtoDAsync_v2_ptsz" -> "cuMemcpyHtoDAsync".
std::string_view api_base_name(std::string_view name);

// Which part of a trace is looked at.
struct TraceWindow {
  struct Part {
    std::int64_t begin = 0;  // on the GPU
    std::int64_t end = 0;
    std::int64_t host_begin = 0;  // on the host: the calls that belong to it
    std::int64_t host_end = 0;
  };
  std::vector<Part> parts;  // in order, not overlapping
  int periods = 1;          // how often the same work is done in them; figures are per period
  // The work repeats, or the program named it: what comes once (warm-up, set-up) is left out.
  bool steady = false;
  std::string chosen;  // why, for people: "38 repetitions of the same 12 operations"
};

// The steady state. With `range`, the ranges of that name, the first left out when there are
// several (warm-up), and in each what was launched from within it. Without, the longest stretch
// of one sequence of operations and waits that repeats at least four times, its first repetition
// left out; failing that the whole trace.
TraceWindow select_window(const Trace& trace, const std::string& range = "");

// Adds the trace.* metrics of one period, and one KernelEvidence per kernel (longest first, at most
// sixteen) with its share and the launch__* facts of its largest launch. With several devices, of
// the busiest one. What a trace cannot show is noted as missing.
void summarize(const Trace& trace, const TraceWindow& window, Evidence* evidence);
Evidence summarize(const Trace& trace);

}  // namespace kernelpro
