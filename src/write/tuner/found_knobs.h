// SPDX-License-Identifier: Apache-2.0
// Knobs for a C++ or CUDA source that declares none, found in its text: named sizes of tiles and
// blocks, block sizes at launches, inner loops, OpenMP's schedule and threads, the order of sums
// and the width of vectors. A setting may break the kernel; that is for the judge to say, as of any
// candidate. Pure; safe on any bytes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/candidate/candidate.h"

namespace kernelpro {

struct KnobSite {
  std::set<long long> sizes;          // of the problem: such numbers stay
  std::vector<std::string> reserved;  // names that a knob may not have (core/task/task.h)
  int processors = 0;                 // that threads run on; 0: unknown
  std::string instruction_sets;       // of the processor, as in Machine
};

struct FoundKnobs {
  std::string source;             // the original, with the knobs declared and used
  KnobValues values;              // under which it computes what the original does
  std::vector<std::string> what;  // one for each knob: "UNROLL (2 inner loops)"
};

// nullopt: nothing found, or the source declares knobs itself.
std::optional<FoundKnobs> find_knobs(const Candidate& candidate, const KnobSite& site);

}  // namespace kernelpro
