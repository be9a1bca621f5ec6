// SPDX-License-Identifier: Apache-2.0
// What a change did: the accounts of a parent and its child side by side, and what was promised.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/candidate/candidate.h"
#include "core/finding/finding.h"

namespace kernelpro {

// A part of the time in two accounts, all kernels together: a child may have other kernels than its
// parent.
struct MovedPart {
  PartKind kind = PartKind::kUnknown;
  std::optional<Stall> stall;  // of a wait
  double before_us = 0, after_us = 0;
};

struct WhatChanged {
  double before_us = 0, after_us = 0;  // of a call; 0: unknown
  std::vector<MovedPart> moved;        // the largest difference first; without small ones
  FindingRef answers;                  // the finding that the child answers; may be empty
  double promised = 0;                 // its likely gain; 0: nothing was promised
  bool parts_known = true;             // false: one of the two was not profiled
};

// Not known() accounts give a value without parts, and so do two of which one alone says where its
// kernels' time goes. `drift`: what the parent would take when the child was measured, over what it
// took when it was measured itself (of a machine that has become slower: > 1); all of the parent's
// times are multiplied by it.
WhatChanged what_changed(const Diagnosis& parent, const Diagnosis& child, const FindingRef& answers,
                         double drift = 1);
// Markdown, a few lines; "" when neither time is known.
std::string change_to_text(const WhatChanged& change,
                           const std::string& title = "What the last change did");

}  // namespace kernelpro
