// SPDX-License-Identifier: Apache-2.0
// Wording of mismatches.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "core/task/inputs.h"
#include "core/task/mismatch.h"
#include "core/task/mismatch_pattern.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kSeen = 1 << 14;  // sample size for value patterns, approximately

double expected_at(const Shaped& output, const Expected& expected, std::int64_t i) {
  if (is_floating(output.tensor->dtype)) return expected.values[static_cast<std::size_t>(i)];
  return element_as_double(output.tensor->dtype, expected.bytes.data(), i);
}

bool is_wrong(const Shaped& output, const void* data, const Expected& expected, std::int64_t i) {
  const DType dtype = output.tensor->dtype;
  const std::size_t size = static_cast<std::size_t>(dtype_bytes(dtype));
  if (!is_floating(dtype)) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    const bool same =
        std::memcmp(static_cast<const char*>(data) + at, expected.bytes.data() + at, size) == 0;
    if (same || expected.rule.kind == Rule::Kind::kScaled) return !same;
  }
  return !(element_error(expected.rule, element_as_double(dtype, data, i),
                         expected_at(output, expected, i),
                         expected.scale) <= allowed_error(expected.rule));
}

bool is_poison(const Shaped& output, const void* data, const Poison& poison, std::int64_t i) {
  const std::size_t size = static_cast<std::size_t>(dtype_bytes(output.tensor->dtype));
  const std::size_t at = static_cast<std::size_t>(i) * size;
  return !poison.pattern.empty() &&
         std::memcmp(static_cast<const char*>(data) + at,
                     poison.pattern.data() + at % poison.pattern.size(), size) == 0;
}

std::string value_text(const Shaped& output, double value) {
  return number(value, is_floating(output.tensor->dtype) ? 6 : 17);
}

// Counts all wrong elements and keeps a sample spread over them.
struct Wrong {
  explicit Wrong(const Shaped& output) : places(output) {}
  WrongPlaces places;
  std::int64_t nans = 0, untouched = 0;
  std::vector<WrongValue> values;  // finite or not; no NaN, no untouched elements
};

Wrong find_wrong(const Shaped& output, const void* data, const Expected& expected,
                 const Comparison& comparison, const Poison& poison) {
  Wrong wrong(output);
  const std::int64_t every = std::max<std::int64_t>(1, comparison.wrong / kSeen);
  for (std::int64_t i = comparison.first; i < output.elements; ++i) {
    if (!is_wrong(output, data, expected, i)) continue;
    wrong.places.add(i);
    const double got = element_as_double(output.tensor->dtype, data, i);
    const bool untouched = is_poison(output, data, poison, i);
    wrong.untouched += untouched ? 1 : 0;
    wrong.nans += std::isnan(got) ? 1 : 0;
    if (untouched || std::isnan(got) || wrong.places.count() % every != 0) continue;
    wrong.values.push_back({i, got, expected_at(output, expected, i)});
  }
  return wrong;
}

// What they hold: poison, NaN, or values with a pattern.
std::string contents(const Shaped& output, const Expected& expected, const Wrong& wrong) {
  const std::int64_t count = wrong.places.count();
  // A few elements may match their poison by chance.
  if (wrong.untouched > 0 && wrong.untouched + wrong.untouched / 1000 >= count) {
    return "; they were never written (still the poison from before the call)";
  }
  if (wrong.nans == count) return "; all of them are NaN";
  std::string text;
  if (wrong.untouched > 0) {
    text += "; some were never written (still the poison from before the call)";
  }
  if (wrong.nans > 0) text += "; some of them are NaN";
  if (!text.empty() || !is_floating(output.tensor->dtype)) return text;
  const std::string pattern = value_pattern(output, wrong.values, expected.values, expected.rms);
  return pattern.empty() ? "" : "; " + pattern;
}

}  // namespace

std::string coordinates(const std::vector<std::int64_t>& shape, std::int64_t index) {
  if (shape.empty()) return "[0]";
  std::vector<std::string> parts(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    parts[d] = std::to_string(index % shape[d]);
    index /= shape[d];
  }
  return "[" + join_text(parts, ", ") + "]";
}

std::string describe_mismatch(const Shaped& output, const void* data, const Expected& expected,
                              const Comparison& comparison, const Poison& poison) {
  const Wrong wrong = find_wrong(output, data, expected, comparison, poison);
  if (wrong.places.count() == 0) return "the output changed while it was compared";
  const std::int64_t first = comparison.first;
  std::string text = std::to_string(comparison.wrong) + " of " + std::to_string(output.elements) +
                     (output.elements == 1 ? " element is" : " elements are") +
                     " wrong, first at " + coordinates(output.shape, first) + ": got " +
                     value_text(output, element_as_double(output.tensor->dtype, data, first)) +
                     ", expected " + value_text(output, expected_at(output, expected, first));
  const std::string pattern = wrong.places.pattern();
  if (!pattern.empty()) text += "; " + pattern;
  text += contents(output, expected, wrong);
  if (!std::isfinite(comparison.worst)) return text;
  if (expected.rule.kind == Rule::Kind::kAllclose) {
    return text + "; the worst is off by " + number(comparison.worst, 3) + " times what " +
           number(expected.rule.absolute, 3) + " + " + number(expected.rule.relative, 3) +
           " |output| allows";
  }
  return text + "; the worst is off by " + number(comparison.worst, 3) + " of its scale (allowed " +
         number(expected.rule.tolerance, 3) + ")";
}

}  // namespace kernelpro
