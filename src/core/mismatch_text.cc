// SPDX-License-Identifier: Apache-2.0
// The words about a mismatch, and the poison that shows what was never written.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "core/inputs.h"
#include "core/mismatch.h"

namespace kernelpro {

namespace {

constexpr std::size_t kSeen = 1 << 16;  // wrong elements that the pattern is read from

double expected_at(const Shaped& output, const Expected& expected, std::int64_t i) {
  if (is_floating(output.tensor->dtype)) return expected.values[static_cast<std::size_t>(i)];
  return element_as_double(output.tensor->dtype, expected.bytes.data(), i);
}

bool is_wrong(const Shaped& output, const void* data, const Expected& expected, std::int64_t i) {
  const std::size_t size = static_cast<std::size_t>(dtype_bytes(output.tensor->dtype));
  if (!is_floating(output.tensor->dtype)) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    return std::memcmp(static_cast<const char*>(data) + at, expected.bytes.data() + at, size) != 0;
  }
  const double out = element_as_double(output.tensor->dtype, data, i);
  const double r = expected_at(output, expected, i);
  if (out == r || (std::isnan(out) && std::isnan(r))) return false;
  const double bound = tolerance_of(*output.tensor) * std::max(std::fabs(r), expected.rms);
  return !(std::fabs(out - r) <= bound);
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

std::string elements_text(std::int64_t n) {
  return n == 1 ? "element" : std::to_string(n) + " elements";
}

// The pattern of wrong positions, or "" where there is none to be seen.
std::string pattern_of(const Shaped& output, const std::vector<std::int64_t>& wrong,
                       std::int64_t count) {
  const std::int64_t n = output.elements;
  if (count == n) return "every element is wrong";
  const std::int64_t first = wrong.front(), last = wrong.back();
  const bool complete = static_cast<std::int64_t>(wrong.size()) == count;
  if (complete && last - first + 1 == count) {
    if (last == n - 1) return "only the last " + elements_text(count) + " of the tensor";
    if (first == 0) return "only the first " + elements_text(count) + " of the tensor";
  }
  const std::int64_t row = output.shape.empty() ? 1 : output.shape.back();
  if (row > 1 && row < n) {
    std::int64_t low = row, high = -1;
    for (const std::int64_t i : wrong) {
      low = std::min(low, i % row);
      high = std::max(high, i % row);
    }
    if (low > 0 && high == row - 1) {
      return "only in the tail of rows, from column " + std::to_string(low) + " of " +
             std::to_string(row);
    }
    if (low == high) return "only in column " + std::to_string(low);
    if (complete && first / row == last / row) {
      return "only in row " + std::to_string(first / row) + " of " + std::to_string(n / row);
    }
    if (complete && first % row == 0 && last == n - 1 && count == n - first) {
      return "all rows from " + std::to_string(first / row) + " on";
    }
  }
  if (wrong.size() >= 3) {
    const std::int64_t step = wrong[1] - wrong[0];
    bool regular = step > 1;
    for (std::size_t i = 2; regular && i < wrong.size(); ++i) {
      regular = wrong[i] - wrong[i - 1] == step;
    }
    if (regular) return "every " + std::to_string(step) + "th element";
  }
  if (complete && last - first + 1 == count && count > 1) {
    return "one run of " + elements_text(count);
  }
  return "";
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

Poison make_poison(DType dtype, std::uint64_t round) {
  const std::uint64_t noise = kp::mix64(round * 0x9e3779b97f4a7c15ull + 1);
  const std::uint64_t kind = round % 4;
  std::uint64_t bits = noise | 0x0101010101010101ull;
  std::size_t size = 8;
  // NaN with a payload, a huge value of either sign, or noise: a kernel that adds to its output, or
  // leaves parts of it, cannot get all of them right.
  switch (dtype) {
    case DType::kFp32: {
      size = 4;
      const std::uint32_t low = static_cast<std::uint32_t>(noise & 0xffff);
      if (kind == 0) bits = 0x7fc10000u | low;
      if (kind == 1) bits = 0x7e960000u | low;
      if (kind == 2) bits = 0xfe160000u | low;
      break;
    }
    case DType::kFp16:
      size = 2;
      if (kind == 0) bits = 0x7e00u | (noise & 0xff) | 1;
      if (kind == 1) bits = 0x7b00u | (noise & 0xff);
      if (kind == 2) bits = 0xfa00u | (noise & 0xff);
      break;
    case DType::kBf16:
      size = 2;
      if (kind == 0) bits = 0x7fc0u | (noise & 0x1f) | 1;
      if (kind == 1) bits = 0x7e80u | (noise & 0x3f);
      if (kind == 2) bits = 0xfe00u | (noise & 0x3f);
      break;
    case DType::kInt32:
    case DType::kInt64:
      break;
    case DType::kBool:
      size = 1;
      bits = 2 + kind;  // no bool has such a byte
      break;
  }
  Poison poison;
  poison.pattern.resize(8);
  for (std::size_t i = 0; i < 8; i += size) std::memcpy(poison.pattern.data() + i, &bits, size);
  return poison;
}

void fill_poison(const Poison& poison, void* data, std::int64_t bytes) {
  std::uint64_t word;
  std::memcpy(&word, poison.pattern.data(), sizeof word);
  char* at = static_cast<char*>(data);
  std::int64_t i = 0;
  for (; i + 8 <= bytes; i += 8) std::memcpy(at + i, &word, 8);
  std::memcpy(at + i, &word, static_cast<std::size_t>(bytes - i));
}

std::string describe_mismatch(const Shaped& output, const void* data, const Expected& expected,
                              const Comparison& comparison, const Poison& poison) {
  std::vector<std::int64_t> wrong;
  std::int64_t nans = 0, untouched = 0, seen = 0;
  for (std::int64_t i = comparison.first; i < output.elements && wrong.size() < kSeen; ++i) {
    if (!is_wrong(output, data, expected, i)) continue;
    wrong.push_back(i);
    ++seen;
    nans += std::isnan(element_as_double(output.tensor->dtype, data, i)) ? 1 : 0;
    untouched += is_poison(output, data, poison, i) ? 1 : 0;
  }
  if (wrong.empty()) return "the output changed while it was compared";
  const std::int64_t first = wrong.front();
  std::string text = std::to_string(comparison.wrong) + " of " + std::to_string(output.elements) +
                     " elements are wrong, first at " + coordinates(output.shape, first) +
                     ": got " +
                     value_text(output, element_as_double(output.tensor->dtype, data, first)) +
                     ", expected " + value_text(output, expected_at(output, expected, first));
  const std::string pattern = pattern_of(output, wrong, comparison.wrong);
  if (!pattern.empty()) text += "; " + pattern;
  if (untouched == seen) {
    text += "; they were never written (still the poison from before the call)";
  } else if (untouched > 0) {
    text += "; some were never written (still the poison from before the call)";
  } else if (nans == seen) {
    text += "; all of them are NaN";
  } else if (nans > 0) {
    text += "; some of them are NaN";
  }
  if (std::isfinite(comparison.worst)) {
    text += "; the worst is off by " + number(comparison.worst, 3) + " of its scale (allowed " +
            number(tolerance_of(*output.tensor), 3) + ")";
  }
  return text;
}

}  // namespace kernelpro
