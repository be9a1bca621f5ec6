// SPDX-License-Identifier: Apache-2.0
// Compares an output with its reference under a rule (core/policy.h) and, when they differ, says
// how: where, how much and in which pattern. Pure but for threads of its own, which share out large
// tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/policy.h"
#include "core/task.h"

namespace kernelpro {

// The reference's result for one output and the rule that holds for it. Floating outputs as
// doubles; others in their own type.
struct Expected {
  Rule rule;
  std::vector<double> values;        // floating
  std::vector<unsigned char> bytes;  // integers and bools
  double rms = 0;                    // root mean square of the finite values
  double scale = 0;                  // by the rule: what small values' errors are measured by
};

// `data`: what the reference wrote. Integers and bools lie in their own type; floating outputs as
// doubles when `wide` (as ReferenceArgs and SharedBuffer::wide have them), else in their own type.
Expected make_expected(const Shaped& output, const void* data, const Rule& rule, bool wide = true);

// The largest error that a rule allows: its tolerance, or 1 for allclose.
double allowed_error(const Rule& rule);
// The error of one element as the rule has it; infinite where one of the two is not finite and they
// are not the same. `scale`: of the expected output.
double element_error(const Rule& rule, double out, double r, double scale);

struct Comparison {
  std::int64_t wrong = 0;   // elements out of tolerance
  std::int64_t first = -1;  // index of the first of them
  double worst = 0;         // the largest element_error; infinite for NaN
  bool ok() const { return wrong == 0; }
};

Comparison compare_output(const Shaped& output, const void* data, const Expected& expected);

// What an output held before the call, to recognise elements that were never written: `pattern`
// repeats from the start of the tensor; its size is a multiple of the element's.
struct Poison {
  std::vector<unsigned char> pattern;
};
// `round` picks one of several kinds: NaNs, huge values of either sign, noise.
Poison make_poison(DType dtype, std::uint64_t round);
void fill_poison(const Poison& poison, void* data, std::int64_t bytes);

// One sentence on a failed comparison: "3 of 128 elements are wrong, first at [0, 125]: got nan,
// expected 0.5; only in the tail of rows, from column 125 of 128; all of them are NaN". REQUIRES:
// !comparison.ok().
std::string describe_mismatch(const Shaped& output, const void* data, const Expected& expected,
                              const Comparison& comparison, const Poison& poison);

// "[1, 17]" for index 145 of shape 8 x 128; of a scalar: "[0]".
std::string coordinates(const std::vector<std::int64_t>& shape, std::int64_t index);

}  // namespace kernelpro
