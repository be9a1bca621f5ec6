// SPDX-License-Identifier: Apache-2.0
// Two versions of a kernel, or of a program, side by side. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "core/evaluation/evaluation.h"
#include "core/evidence/evidence.h"
#include "core/finding/change.h"
#include "core/finding/finding.h"

namespace kernelpro {

struct ComparedSide {
  std::string name;   // for display: "old.cu"
  std::string wrong;  // why it is no working kernel; "": it works, or it was not run
  Evidence evidence;
  Diagnosis diagnosis;
};

struct ComparedMetric {
  std::string_view name, unit, description;
  std::optional<double> before, after;  // nullopt: not observed
};

struct ComparedKernel {
  std::string name;                       // "": the whole call
  std::vector<ComparedMetric> differing;  // in the registry's order
  int same = 0;                           // metrics that both have and that agree
};

struct SideBySide {
  std::string before, after;                // names
  std::string before_wrong, after_wrong;    // as in ComparedSide
  double before_us = 0, after_us = 0;       // of a call; 0: unknown
  std::optional<Correct::Versus> paired;    // before over after, measured in turn
  std::vector<ComparedKernel> kernels;      // those of both, and the call
  std::vector<std::string> removed, added;  // kernels of one side only
  WhatChanged change;                       // of the accounts
  std::vector<std::string> mended, newly;   // tools whose findings only one side has
};

// `paired`: the ratio of their times, if they were timed in turn.
SideBySide compare(const ComparedSide& before, const ComparedSide& after,
                   const std::optional<Correct::Versus>& paired);

// Time of `before` over time of `after`, paired if possible: > 1 is faster; nullopt: unknown.
std::optional<double> speedup_of(const SideBySide& comparison);
// Whether `after` is clearly below this speed-up: all of its interval, or its ratio where it has
// none; also where it does not work.
bool falls_below(const SideBySide& comparison, double speedup);

// Markdown, for a terminal and for a pull request.
std::string comparison_text(const SideBySide& comparison);
Json comparison_json(const SideBySide& comparison);

}  // namespace kernelpro
