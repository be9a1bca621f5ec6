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

// What the rule of an output needs for another result of the same computation to pass.
struct Admitted {
  double least = 0;         // the scale is at least this; 0: its own suffices
  double worst = 0;         // the largest error over that scale, of at most kMildly tolerances
  std::uint64_t jumps = 0;  // elements that changed by more than half of their size: no tolerance
                            // can be meant for them, and they are left out
};

// Raises the scale of a scaled rule (`expected->scale` and `expected->rule.least`) for `other` to
// pass: until it covers the differences of elements below it, and of those that differ by more than
// kMildly tolerances of their own size. Large, well conditioned elements do not raise it; `worst`
// is the tolerance that they need.
//
// With a result whose operands were rounded (python/kernelpro_torch/rounding.py) this makes room
// for rounding errors that the elements' own sizes do not show: of a sum that cancels, or of
// min(x, 0) near zero. Where rounding matters less than the tolerance nothing changes.
Admitted admit(const std::vector<double>& other, Expected* expected);

// Of `admit`; the judge's too.
inline constexpr int kAdmitRounds = 8;  // how often the scale may grow, meeting larger elements
inline constexpr double kMildly = 10;   // tolerances of an element's own size
inline constexpr double kJump = 0.5;    // of the larger of the element and the root mean square
// More jumps than this share of an output: it is rounding noise.
inline constexpr double kNoisyShare = 0.01;

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
