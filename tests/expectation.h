// SPDX-License-Identifier: Apache-2.0
// The verdict that a kernel of the suite must get, from its first lines:
//
//   // task: axpy
//   // expect: rejected input-mutation | crashed
//
// Alternatives are separated by " | ". The first word of each is an outcome's name
// (core/evaluation/evaluation.h), or `slow`: correct, and at most 1.1x as fast as the task's
// kernel. A higher ratio whose confidence interval includes a tie is `unclear` and must be measured
// again. The rest must be in the verdict: a rejection's rule, a correct kernel's label, or part of
// another outcome's text. `correct` alone accepts no label that limits correctness
// ("given-distribution-only", "given-parameters-only").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evaluation/evaluation.h"

namespace kernelpro {

struct Expectation {
  struct Alternative {
    std::string outcome;
    std::string detail;  // may be ""
  };
  std::vector<Alternative> alternatives;

  enum class Answer { kNo, kUnclear, kYes };

  bool names(std::string_view outcome) const;  // is among the alternatives
  bool only(std::string_view outcome) const;   // is the only alternative
  Answer holds(const Outcome& outcome) const;
};

// An outcome in the same notation: "rejected input-mutation", "correct x1.02".
std::string verdict_text(const Outcome& outcome);

struct SuiteHeader {
  std::string task;
  Expectation expectation;
};
// Parses the first lines of a kernel, comments that begin with // or #. nullopt if a line is
// missing or names an unknown outcome.
std::optional<SuiteHeader> read_header(std::string_view source);

}  // namespace kernelpro
