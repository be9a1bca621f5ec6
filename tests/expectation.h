// SPDX-License-Identifier: Apache-2.0
// The verdict that a kernel of the suite must get, as its first lines say:
//
//   // task: axpy
//   // expect: rejected input-mutation | crashed
//
// Alternatives are separated by " | ". The first word of each is an outcome's name
// (core/evaluation.h), or `slow`: correct, and not more than 1.1 times faster than the task's own
// kernel. A ratio above that whose interval does not exclude a tie is no verdict on the attack:
// `unclear`, to be measured again. What follows must be in the verdict: a rejection's rule, a
// correct kernel's label, part of another outcome's text. `correct` alone accepts no label that
// restricts what is right ("given-distribution-only", "given-parameters-only").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evaluation.h"

namespace kernelpro {

struct Expectation {
  struct Alternative {
    std::string outcome;
    std::string detail;  // may be ""
  };
  std::vector<Alternative> alternatives;

  enum class Answer { kNo, kUnclear, kYes };

  bool names(std::string_view outcome) const;  // among its alternatives
  bool only(std::string_view outcome) const;   // and there is no other
  Answer holds(const Outcome& outcome) const;
};

// What the verdict comes to, in the same words: "rejected input-mutation", "correct x1.02".
std::string verdict_text(const Outcome& outcome);

struct SuiteHeader {
  std::string task;
  Expectation expectation;
};
// Reads the first lines of a kernel, whose comments begin with // or #. nullopt without both lines,
// or with an outcome that does not exist.
std::optional<SuiteHeader> read_header(std::string_view source);

}  // namespace kernelpro
