// SPDX-License-Identifier: Apache-2.0
// Runs a whole program under the tracer library and returns its GPU activity.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "profile/trace/trace.h"

namespace kernelpro {

struct TraceOptions {
  double timeout_s = 600;
  std::string cwd;               // empty: our own
  std::vector<std::string> env;  // "NAME=value", added to our environment
  std::string cupti;             // path to libcupti; "" = the tracer searches
  std::string tracer;            // path to libkernelpro_trace.so; "" = as companion_path
  bool ranges = true;            // also record NVTX ranges
  bool code = true;              // also keep the machine code that it loads
};

struct TracedProgram {
  Trace trace;
  Exit exit;  // how the program ended, and what it printed
  // Files with the machine code of loaded modules, those of libraries too; in a folder that lives
  // as long as the object.
  std::vector<std::string> code;
  std::shared_ptr<const TempDir> folder;
};

// Blocks until the program ends or times out; on a timeout the trace holds what was written by then
// and complete = false. Child processes are traced too. Fails with kEnvironment when the tracer or
// CUPTI cannot be used or the program cannot be started, and with kBadInput when it used no GPU. If
// the program itself failed, the message quotes its last output.
Result<TracedProgram> trace_program(const std::vector<std::string>& argv,
                                    const TraceOptions& options);

// Runs the program once more and samples where its kernels wait (profile/inject/sampler.h).
// `period`: exponent of two in cycles. Without samples, `missing` of the answers says why; fails as
// above.
Result<SampleAnswers> sample_program(const std::vector<std::string>& argv,
                                     const TraceOptions& options, int period);
// The period that gives a program with this trace some million samples.
int sampling_period_of(const Trace& trace);

}  // namespace kernelpro
