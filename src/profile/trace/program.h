// SPDX-License-Identifier: Apache-2.0
// Runs a whole program under the tracer library and returns what it did on the GPU.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/process/subprocess.h"
#include "profile/trace/trace.h"

namespace kernelpro {

struct TraceOptions {
  double timeout_s = 600;
  std::string cwd;               // empty: ours
  std::vector<std::string> env;  // "NAME=value", added to ours
  std::string cupti;             // path of libcupti; "" = as the tracer finds it
  std::string tracer;            // path of libkernelpro_trace.so; "" = beside this executable
  bool ranges = true;            // also what the program marks with NVTX
};

struct TracedProgram {
  Trace trace;
  Exit exit;  // how the program ended, and what it printed
};

// Blocks until the program ends or its time is up; then what was written until then is the trace,
// with complete = false. Processes that the program starts are traced too. Fails with kEnvironment
// when the tracer or CUPTI cannot be used or the program cannot be started, and with kBadInput when
// it used no GPU; the message tells what the program printed last when it failed itself.
Result<TracedProgram> trace_program(const std::vector<std::string>& argv,
                                    const TraceOptions& options);
Result<Trace> trace_program(const std::vector<std::string>& argv, double timeout_s);

}  // namespace kernelpro
