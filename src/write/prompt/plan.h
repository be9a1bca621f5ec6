// SPDX-License-Identifier: Apache-2.0
// The ideas that coders implement: from a planner's reply, or without one from the diagnosis. Pure;
// accepts any bytes.
#pragma once

#include <string>
#include <vector>

#include "core/candidate/candidate.h"
#include "core/finding/finding.h"
#include "core/proposal/proposal.h"

namespace kernelpro {

inline constexpr std::size_t kLongestIdea = 2000;

struct PlannedIdea {
  std::string text;    // one paragraph, printable; longer ones end in " ..."
  FindingRef answers;  // of the diagnosis
  double gain = 0;     // expected by the planner; 0: not given
};

// At most `most` ideas, in the reply's order, without duplicates. Lines may have Markdown markup
// and numbers. An idea that names a finding or tag missing from the diagnosis answers nothing.
std::vector<PlannedIdea> ideas_of(const std::string& reply, const Diagnosis& diagnosis, int most);

// Each finding of the parent without an answering child, then a free choice.
std::vector<PlannedIdea> ideas_without_planner(const ProposalRequest& request, int most);

}  // namespace kernelpro
