// SPDX-License-Identifier: Apache-2.0
// Compares an output with its reference under a rule (core/task/policy.h) and describes any
// difference: where, how large and in which pattern. Pure, except that it starts threads for large
// tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/task/policy.h"
#include "core/task/task.h"

namespace kernelpro {

// The reference's result for one output, and the rule that applies. Floating outputs are doubles;
// others keep their own type.
struct Expected {
  Rule rule;
  std::vector<double> values;        // floating
  std::vector<unsigned char> bytes;  // integers and bools
  double rms = 0;                    // root mean square of the finite values
  double scale = 0;                  // by the rule: the unit for errors of small values
};

// `data`: the reference's output. Integers and bools are in their own type; floating outputs are
// doubles if `wide` (as in ReferenceArgs and SharedBuffer::wide), else in their own type.
Expected make_expected(const Shaped& output, const void* data, const Rule& rule, bool wide = true);

// The largest error that a rule permits: its tolerance, or 1 for allclose.
double allowed_error(const Rule& rule);
// The error of one element under the rule; infinite if either value is not finite and they differ.
// `scale`: of the expected output.
double element_error(const Rule& rule, double out, double r, double scale);

// What an output's rule needs so that another result of the same computation passes.
struct Admitted {
  double least = 0;         // minimum scale; 0: its own suffices
  double worst = 0;         // the largest error over that scale, up to kMildly tolerances
  std::uint64_t jumps = 0;  // elements that changed by more than kJump: no tolerance is
                            // meant to cover them, so they are left out
};

// Raises the scale of a scaled rule (`expected->scale` and `expected->rule.least`) until `other`
// passes: it must cover the differences of elements below it, and of those that differ by more than
// kMildly tolerances of their own size. Large, well-conditioned elements do not raise it; `worst`
// is the tolerance that they need.
//
// With a result from rounded operands (python/kernelpro_torch/rounding.py), this allows for
// rounding errors that the elements' own sizes do not show: in a sum that cancels, or in min(x, 0)
// near zero. Nothing changes where rounding matters less than the tolerance.
Admitted admit(const std::vector<double>& other, Expected* expected);

// For `admit`, and the judge.
inline constexpr int kAdmitRounds = 8;  // how often the scale may grow, as larger elements count
inline constexpr double kMildly = 10;   // tolerances of an element's own size
inline constexpr double kJump = 0.5;    // of the larger of the element and the root mean square
// An output with a larger fraction of jumps is rounding noise.
inline constexpr double kNoisyShare = 0.01;

struct Comparison {
  std::int64_t wrong = 0;   // elements out of tolerance
  std::int64_t first = -1;  // index of the first of them
  double worst = 0;         // the largest element_error; infinite for NaN
  bool ok() const { return wrong == 0; }
};

Comparison compare_output(const Shaped& output, const void* data, const Expected& expected);

// An output's contents before the call, to recognise elements that were never written: `pattern`
// repeats from the start of the tensor; its size is a multiple of the element size.
struct Poison {
  std::vector<unsigned char> pattern;
};
// `round` selects the kind: NaNs, huge values of either sign, noise.
Poison make_poison(DType dtype, std::uint64_t round);
void fill_poison(const Poison& poison, void* data, std::int64_t bytes);

// Describes a failed comparison in one sentence: "3 of 128 elements are wrong, first at [0, 125]:
// got nan, expected 0.5; only in the tail of rows, from column 125 of 128; all of them are NaN".
// REQUIRES: !comparison.ok().
std::string describe_mismatch(const Shaped& output, const void* data, const Expected& expected,
                              const Comparison& comparison, const Poison& poison);

// "[1, 17]" for index 145 of shape 8 x 128; "[0]" for a scalar.
std::string coordinates(const std::vector<std::int64_t>& shape, std::int64_t index);

}  // namespace kernelpro
