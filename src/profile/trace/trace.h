// SPDX-License-Identifier: Apache-2.0
// A timeline of a program's GPU work and CUDA API calls, and its system-level metrics. Filled by
// our tracer (profile/trace/program.h) or from an nsys export.
// All times are nanoseconds on one clock with an arbitrary zero. Everything here is pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/evidence.h"
#include "core/evidence/samples.h"

namespace kernelpro {

struct Trace {
  // Unknown members keep their defaults; nothing is made up.
  struct Kernel {
    std::string name;  // mangled or demangled
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint32_t correlation = 0;  // of the launching API call; a graph's kernels share one
    std::uint32_t stream = 0;
    std::uint32_t device = 0;
    std::uint64_t graph_node = 0;  // 0: not in a graph
    std::uint32_t graph = 0;       // 0: not in a graph
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
    bool pageable = false;  // source or destination is pageable host memory
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
  // Device memory that was allocated or released.
  struct Memory {
    std::int64_t time = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t device = 0;
    bool allocated = true;
    std::uint32_t process = 0;
  };
  // Host calls to the runtime or driver API, outermost only ("cudaLaunchKernel", not the driver's
  // cuLaunchKernel inside it), without version suffixes: "cudaMemcpyAsync".
  struct Api {
    std::string name;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint32_t correlation = 0;
    std::uint32_t thread = 0;
    std::uint32_t process = 0;
  };
  // A named NVTX range.
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
  std::vector<Memory> memory;
  std::vector<Api> calls;
  std::vector<Range> ranges;
  // Profiler overhead: start and end of each delay.
  std::vector<std::array<std::int64_t, 2>> overheads;
  SampleAnswers samples;           // of a run that was sampled instead of traced
  std::int64_t dropped = 0;        // lost records
  bool complete = true;            // false: the program ended before the last records were written
  std::string source;              // "CUPTI activity", "nsys export"
  std::vector<std::string> notes;  // caveats: a process whose records are missing, ...

  bool empty() const { return kernels.empty() && copies.empty() && memsets.empty(); }
  // Sorts by start time; a reader calls it once, after its last record.
  void sort();
};

// Classes of API calls, runtime and driver alike, by name.
enum class ApiClass {
  kOther,
  kLaunch,    // kernels and graphs
  kCopy,      // copies and memsets; those without Async wait for the device
  kSync,      // waits for the device, a stream or an event
  kAllocate,  // cudaMalloc, cudaFree, cudaHostAlloc: may wait for the device
  kPool,      // cudaMallocAsync, cudaFreeAsync: stream-ordered, cheap
};
ApiClass api_class(std::string_view name);
// "cuMemcpyHtoDAsync_v2_ptsz" -> "cuMemcpyHtoDAsync".
std::string_view api_base_name(std::string_view name);

// The part of a trace to analyze.
struct TraceWindow {
  struct Part {
    std::int64_t begin = 0;  // on the GPU
    std::int64_t end = 0;
    std::int64_t host_begin = 0;  // on the host: the calls that belong to this part
    std::int64_t host_end = 0;
  };
  std::vector<Part> parts;  // in order, disjoint
  int periods = 1;          // repetitions of the same work in them; metrics are per period
  // The work repeats, or a named range marks it: one-time work (warm-up, set-up) is excluded.
  bool steady = false;
  std::string chosen;  // human-readable reason: "38 repetitions of the same 12 operations"
};

// Selects the steady state. With `range`: the work launched within the ranges of that name, without
// the first if there are several (warm-up). Without `range`: of the sequences of operations and
// waits that repeat at least four times, the stretch with the most kernel time, without its first
// repetition; failing that, the whole trace.
TraceWindow select_window(const Trace& trace, const std::string& range = "");

// Adds the trace.* metrics of one period, and one KernelEvidence per kernel (longest first, at most
// sixteen) with its share and the launch__* facts of its largest launch. With several devices, uses
// the busiest one. Notes as missing what a trace cannot show.
void summarize(const Trace& trace, const TraceWindow& window, Evidence* evidence);
Evidence summarize(const Trace& trace);

}  // namespace kernelpro
