// SPDX-License-Identifier: Apache-2.0
// How precise the results of a kernel are as a whole: errors that no single element's tolerance
// shows. Pure, except that it starts threads for large tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "core/task/mismatch.h"
#include "core/task/task.h"

namespace kernelpro {

// How far a floating output, or another result of the reference, is from the expected one, over the
// elements that are finite in both.
struct Deviation {
  double norm = 0;   // of the errors, over the norm of the expected values; 0 if those are all zero
  double worst = 0;  // the largest error over the larger of the element and the root mean square
  // The factor, less one, by which all results are too large: sum of error times value over sum of
  // squared values. Sums rounded in one direction have one; random errors do not.
  double common = 0;
  // Root mean square, and the largest, of the errors over the larger of the element and the
  // output's scale: also where few elements decide the norm.
  double relative = 0, relative_worst = 0;
  double changed = 0;  // the fraction of elements that differ by more than kChanged of their size
  // That of elements that count (kCountsFrom) and of which little is left: wrong by more than
  // a sixteenth.
  double lost = 0;
  // By mean_axes: the root mean square of the means of errors, less what is common to all, over
  // that of the expected values.
  std::vector<double> means = {};
};
inline constexpr double kChanged = 0x1p-12;
inline constexpr double kCountsFrom =
    0x1p-16;  // of the root mean square: what is smaller does not count
inline constexpr double kLostFrom = 0x1p-4;

// Errors of an operand, which many results share, do not average out, as those of their sums do.
// The errors of `groups` are averaged, each over elements in `outer` blocks of `length` elements at
// a distance of `inner`.
struct MeanAxis {
  std::int64_t outer = 1, length = 1, inner = 1;
  bool across = false;  // over all elements at one place of the axis; else along the axis
  std::int64_t groups() const { return across ? length : outer * inner; }
  std::int64_t averaged() const { return across ? outer * inner : length; }
};
inline constexpr std::int64_t kFewestGroups = 8, kFewestMeans = 16;  // groups, elements of each
// Those of a shape that have enough of both.
std::vector<MeanAxis> mean_axes(const std::vector<std::int64_t>& shape);

// `data`: an output in its own type. What rounding to a half type may account for is no error: of
// all the values that would have been rounded to an element, the one nearest to its expected value
// counts.
Deviation deviation(const Shaped& output, const void* data, const Expected& expected);
// `shape`: for the means; may be empty.
Deviation deviation(const std::vector<double>& other, const Expected& expected,
                    const std::vector<std::int64_t>& shape = {});

// Raises each member of `to` to that of `by`, times `times`, but `common`.
void raise(const Deviation& by, double times, Deviation* to);

}  // namespace kernelpro
