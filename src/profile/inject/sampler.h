// SPDX-License-Identifier: Apache-2.0
// Program-counter samples of a traced program's first context, from its creation to the end of the
// program, in a run of their own: sampling makes kernels some 30 % longer, so times come from a run
// without it. Kernels are not serialised (CUPTI's continuous mode): they are sampled side by side
// as the program runs them, and added up by function.
#pragma once

#include <cupti.h>
#include <cupti_pcsampling.h>

#include <map>
#include <string>
#include <vector>

#include "profile/inject/cupti_table.h"
#include "profile/inject/trace_writer.h"

namespace kernelpro::tracer {

class Sampler {
 public:
  // `period`: the exponent of two in cycles.
  Sampler(const CuptiTable& cupti, std::uint32_t period) : cupti_(cupti), period_(period) {}
  // Of the first context only. "", or why there are no samples.
  std::string begin(CUcontext context);
  // Writes what was sampled, once.
  void end(TraceWriter* writer);
  // The same if it is this context that ends.
  void end_of(CUcontext context, TraceWriter* writer) {
    if (context == context_) end(writer);
  }

 private:
  std::string configure();
  std::string refused(const char* call, CUptiResult result) const;

  const CuptiTable& cupti_;
  const std::uint32_t period_;
  CUcontext context_ = nullptr;
  bool started_ = false;
  std::map<std::uint32_t, std::string> reasons_;
  CUpti_PCSamplingData data_{};
  std::vector<CUpti_PCSamplingPCData> pcs_;
  std::vector<CUpti_PCSamplingStallReason> stalls_;
};

}  // namespace kernelpro::tracer
