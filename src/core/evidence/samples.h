// SPDX-License-Identifier: Apache-2.0
// Program-counter samples of kernels, as a profiler reports them: each sample is one warp, where it
// stands and why it waits. profile/places turns them, together with the machine code, into places
// with causes (core/evidence/places.h). Plain values; JSON is safe to read from any bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/evidence/missing.h"
#include "core/evidence/stall.h"

namespace kernelpro {

struct StallSamples {
  Stall stall = Stall::kSelected;
  double all = 0;
  double exposed = 0;  // those in whose cycle the scheduler issued nothing; <= all
};

struct PcSamples {
  int offset = 0;  // bytes from the function's first instruction
  std::vector<StallSamples> stalls;
};

struct KernelSamples {
  std::string function;        // mangled, as in the cubin
  std::vector<PcSamples> pcs;  // by offset, ascending
};

struct SampleAnswers {
  std::string source;        // "cupti" or "ncu"; "": nothing was collected
  double period_cycles = 0;  // between two samples of a scheduler; 0: unknown
  double dropped = 0;        // samples lost, of all kernels
  std::vector<KernelSamples> kernels;
  std::vector<Missing> missing;  // why there are none
};

std::string sample_answers_to_json(const SampleAnswers& answers);
// nullopt: not valid answers.
std::optional<SampleAnswers> sample_answers_from_json(const std::string& json);

}  // namespace kernelpro
