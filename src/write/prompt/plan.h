// SPDX-License-Identifier: Apache-2.0
// What a planner answered becomes ideas. Pure; any bytes may come in.
#pragma once

#include <string>
#include <vector>

#include "core/candidate.h"
#include "core/finding.h"

namespace kernelpro {

inline constexpr std::size_t kLongestIdea = 2000;

struct PlannedIdea {
  std::string text;    // one paragraph, printable; longer ones end in " ..."
  FindingRef answers;  // of the diagnosis
  double gain = 0;     // the speed-up that the planner expects; 0: it does not say
};

// At most `most` of them, in the reply's order, none twice. Lines may be decorated as Markdown and
// numbered. An idea that names a finding or a tag that the diagnosis has not answers nothing.
std::vector<PlannedIdea> ideas_of(const std::string& reply, const Diagnosis& diagnosis, int most);

}  // namespace kernelpro
