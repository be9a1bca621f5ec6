// SPDX-License-Identifier: Apache-2.0
#include "core/task/mismatch_pattern.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"

namespace kernelpro {

namespace {

std::string elements_text(std::int64_t n) {
  return n == 1 ? "element" : std::to_string(n) + " elements";
}

std::string ordinal(std::int64_t n) {
  const std::int64_t tens = n % 100;
  const bool teen = tens >= 11 && tens <= 13;
  const char* ending = teen          ? "th"
                       : n % 10 == 1 ? "st"
                       : n % 10 == 2 ? "nd"
                       : n % 10 == 3 ? "rd"
                                     : "th";
  return std::to_string(n) + ending;
}

// ", from element 1024 on, a multiple of 1024": where whole blocks end; else "".
std::string block_text(std::int64_t from) {
  if (from <= 0 || from % 32 != 0) return "";
  std::int64_t block = 32;
  while (block < 4096 && from % (2 * block) == 0) block *= 2;
  return ", from element " + std::to_string(from) + ", a multiple of " + std::to_string(block);
}

std::string range_text(std::int64_t low, std::int64_t high) {
  return low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
}

}  // namespace

WrongPlaces::WrongPlaces(const Shaped& output) : elements_(output.elements) {
  for (std::size_t d = 0; d < output.shape.size(); ++d) {
    if (output.shape[d] == 1) continue;
    Axis axis;
    axis.size = axis.low = output.shape[d];
    axis.seen.resize(static_cast<std::size_t>(axis.size));
    axes_.push_back(std::move(axis));
    dims_.push_back(static_cast<int>(d));
  }
}

void WrongPlaces::mark(Axis* axis, std::int64_t at) {
  axis->low = std::min(axis->low, at);
  axis->high = std::max(axis->high, at);
  if (axis->seen[static_cast<std::size_t>(at)]) return;
  axis->seen[static_cast<std::size_t>(at)] = true;
  ++axis->distinct;
}

void WrongPlaces::add(std::int64_t index) {
  if (count_ == 0) first_ = index;
  if (count_ == 0 || index != last_ + 1) ++runs_;
  step_ = std::gcd(step_, index - first_);
  last_ = index;
  ++count_;
  lanes_ |= 1u << (index % 32);
  for (std::size_t a = axes_.size(); a-- > 0;) {
    mark(&axes_[a], index % axes_[a].size);
    index /= axes_[a].size;
  }
}

// One contiguous run in memory.
std::string WrongPlaces::run_pattern() const {
  const std::int64_t row = axes_.empty() ? 1 : axes_.back().size;
  const bool rows = axes_.size() > 1 && row > 1 && first_ % row == 0 && count_ % row == 0;
  const std::int64_t how_many = count_ / row, of = elements_ / row;
  const std::string of_rows = " of " + std::to_string(of);
  if (rows && how_many == 1) return "only in row " + std::to_string(first_ / row) + of_rows;
  if (rows && first_ == 0) return "only the first " + std::to_string(how_many) + " rows" + of_rows;
  if (rows && last_ == elements_ - 1) {
    return "only the last " + std::to_string(how_many) + " rows" + of_rows;
  }
  if (rows) return "only rows " + range_text(first_ / row, last_ / row) + of_rows;
  if (last_ == elements_ - 1) {
    return "only the last " + elements_text(count_) + " of the tensor" + block_text(first_);
  }
  if (first_ == 0) return "only the first " + elements_text(count_) + " of the tensor";
  if (count_ == 1) return "";
  std::string text = "one run of " + elements_text(count_);
  if (count_ == 32 && first_ % 32 == 0) {
    text += ", those of one warp";
  } else if (count_ > 32 && count_ % 32 == 0 && first_ % count_ == 0) {
    text += ", from a multiple of their number: those of one block";
  }
  return text;
}

// The wrong elements are all those with certain coordinates: a tile, a column, a slice.
std::string WrongPlaces::box_pattern() const {
  double box = 1;
  for (const Axis& axis : axes_) box *= static_cast<double>(axis.distinct);
  if (axes_.size() < 2 || box != static_cast<double>(count_)) return "";
  const Axis& row = axes_[axes_.size() - 2];
  const Axis& column = axes_.back();
  bool others_full = true;
  for (std::size_t a = 0; a + 2 < axes_.size(); ++a) others_full = others_full && axes_[a].full();
  if (!row.full() && !column.full() && row.run() && column.run() && column.distinct > 1 &&
      row.distinct > 1) {
    return "only rows " + range_text(row.low, row.high) + " and columns " +
           range_text(column.low, column.high) + ": one tile of " + std::to_string(row.distinct) +
           " x " + std::to_string(column.distinct) + (others_full ? "" : ", not in every matrix");
  }
  std::vector<std::string> parts;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Axis& axis = axes_[a];
    if (axis.full()) continue;
    if (!axis.run()) return "";
    parts.push_back("where coordinate " + std::to_string(dims_[a]) + " is " +
                    range_text(axis.low, axis.high) + " of " + std::to_string(axis.size));
  }
  return parts.size() == 1 && !column.full() ? "" : "only " + join_text(parts, " and ");
}

// Rows and columns that the wrong elements share, whether or not these are entirely wrong.
std::string WrongPlaces::plane_pattern() const {
  if (axes_.size() < 2) return "";
  const Axis& column = axes_.back();
  const std::string of = " of " + std::to_string(column.size);
  if (column.low > 0 && column.high == column.size - 1 && column.run()) {
    return "only in the tail of rows, from column " + std::to_string(column.low) + of;
  }
  if (column.low == column.high) return "only in column " + std::to_string(column.low) + of;
  if (first_ / column.size == last_ / column.size) {
    return "only in row " + std::to_string(first_ / column.size) + " of " +
           std::to_string(elements_ / column.size);
  }
  if (!column.full() && column.run() && column.distinct <= column.size / 2) {
    return "only in columns " + range_text(column.low, column.high) + of;
  }
  for (std::size_t a = 0; a + 1 < axes_.size(); ++a) {
    const Axis& axis = axes_[a];
    if (axis.full() || !axis.run() || axis.distinct > axis.size / 2) continue;
    return "only where coordinate " + std::to_string(dims_[a]) + " is " +
           range_text(axis.low, axis.high) + " of " + std::to_string(axis.size);
  }
  return "";
}

std::string WrongPlaces::regular_pattern() const {
  if (count_ >= 3 && step_ > 1 && (last_ - first_) / step_ + 1 == count_) {
    return "every " + ordinal(step_) + " element";
  }
  std::vector<std::string> lanes;
  for (int lane = 0; lane < 32; ++lane) {
    if ((lanes_ >> lane & 1) != 0) lanes.push_back(std::to_string(lane));
  }
  if (count_ >= 16 && lanes.size() <= 4) {
    return "only elements whose index modulo 32 is " + join_text(lanes, ", ");
  }
  if (count_ >= 3 && count_ <= elements_ / 100 && runs_ * 2 > count_) return "scattered";
  return "";
}

std::string WrongPlaces::pattern() const {
  if (count_ == 0) return "";
  if (count_ == elements_) return "every element is wrong";
  if (runs_ == 1) return run_pattern();
  for (const auto find :
       {&WrongPlaces::box_pattern, &WrongPlaces::plane_pattern, &WrongPlaces::regular_pattern}) {
    if (std::string text = (this->*find)(); !text.empty()) return text;
  }
  return "";
}

namespace {

constexpr double kNearly = 0.95;  // of the values that a pattern must explain

// Of an element's scale: close enough for a match.
double close_enough(DType dtype) {
  return dtype == DType::kBf16 ? 1e-2 : dtype == DType::kFp16 ? 2e-3 : 1e-3;
}

class Values {
 public:
  Values(const Shaped& output, const std::vector<WrongValue>& values,
         const std::vector<double>& expected, double rms)
      : output_(output),
        values_(values),
        expected_(expected),
        rms_(rms),
        close_(close_enough(output.tensor->dtype)) {}

  std::string pattern() const {
    if (nearly_all([](const WrongValue& v) { return v.got == 0; })) {
      return all() + "0";
    }
    if (nearly_all([](const WrongValue& v) { return std::isinf(v.got); })) {
      return all() + "infinite";
    }
    if (values_.size() < 3) return "";
    if (std::string text = one_value(); !text.empty()) return text;
    if (std::string text = factor(); !text.empty()) return text;
    if (std::string text = offset(); !text.empty()) return text;
    if (std::string text = moved(); !text.empty()) return text;
    if (nearly_all([](const WrongValue& v) { return v.expected < 0; }) && varies_in_sign()) {
      return "all where a negative value was expected";
    }
    return rounding();
  }

 private:
  template <class Holds>
  bool nearly_all(const Holds& holds) const {
    const auto n = std::count_if(values_.begin(), values_.end(), holds);
    return static_cast<double>(n) >= kNearly * static_cast<double>(values_.size());
  }
  std::string all() const { return values_.size() == 1 ? "it is " : "all of them are "; }
  bool close(double a, double b) const {
    return std::fabs(a - b) <= close_ * std::max(std::fabs(b), rms_);
  }
  // If expected values are nearly equal, anything looks like a pattern.
  bool expected_varies() const {
    const auto [low, high] = std::minmax_element(
        values_.begin(), values_.end(),
        [](const WrongValue& a, const WrongValue& b) { return a.expected < b.expected; });
    return high->expected - low->expected > 0.02 * rms_;
  }
  bool varies_in_sign() const {
    return std::any_of(expected_.begin(), expected_.end(), [](double v) { return v > 0; });
  }

  std::string one_value() const {
    const double value = values_[values_.size() / 2].got;
    if (!std::isfinite(value)) return "";
    const bool same = nearly_all([&](const WrongValue& v) { return v.got == value; });
    return same ? all() + number(value, 6) : "";
  }

  std::string factor() const {
    double products = 0, squares = 0;
    for (const WrongValue& v : values_) {
      if (!std::isfinite(v.got) || !std::isfinite(v.expected)) continue;
      products += v.got * v.expected;
      squares += v.expected * v.expected;
    }
    const double f = squares > 0 ? products / squares : 0;
    if (f == 0 || !std::isfinite(f) || !expected_varies()) return "";
    if (!nearly_all([&](const WrongValue& v) { return close(v.got / f, v.expected); })) return "";
    if (std::fabs(f - 1) < 5 * close_) return "";  // just rounding
    if (std::fabs(f + 1) < close_) return "each has the wrong sign";
    return "each is " + number(f, 4) + " times what was expected";
  }

  std::string offset() const {
    std::vector<double> differences;
    for (const WrongValue& v : values_) differences.push_back(v.got - v.expected);
    std::nth_element(differences.begin(), differences.begin() + differences.size() / 2,
                     differences.end());
    const double d = differences[differences.size() / 2];
    if (!std::isfinite(d) || std::fabs(d) < 10 * close_ * rms_ || !expected_varies()) return "";
    if (!nearly_all([&](const WrongValue& v) { return close(v.got - d, v.expected); })) return "";
    return std::string("each is too ") + (d > 0 ? "large" : "small") + " by " +
           number(std::fabs(d), 4);
  }

  // Correct values in wrong places.
  std::string moved() const {
    if (!expected_varies()) return "";
    const std::int64_t n = output_.elements;
    const std::size_t rank = output_.shape.size();
    const std::int64_t columns = rank > 0 ? output_.shape[rank - 1] : 1;
    const std::int64_t rows = rank > 1 ? output_.shape[rank - 2] : 1;
    const auto holds = [&](const auto& source) {
      return nearly_all([&](const WrongValue& v) {
        const std::int64_t from = source(v.index);
        return from >= 0 && from < n && close(v.got, expected_[static_cast<std::size_t>(from)]);
      });
    };
    if (rows > 1 && columns > 1) {
      // Element (r, c) of the matrix is where (c, r) of its transpose would be.
      const auto transposed = [&](std::int64_t i) {
        const std::int64_t matrix = i / (rows * columns), at = i % (rows * columns);
        return matrix * rows * columns + at % rows * columns + at / rows;
      };
      if (holds(transposed)) return "they are the transpose of what was expected";
    }
    for (const std::int64_t by : {std::int64_t{1}, std::int64_t{-1}, columns, -columns}) {
      if (std::llabs(by) == columns && rows == 1) continue;
      if (!holds([&](std::int64_t i) { return i + by; })) continue;
      const bool row = std::llabs(by) != 1;
      return std::string("they are the values of the ") + (by > 0 ? "next " : "previous ") +
             (row ? "row" : "element");
    }
    return "";
  }

  std::string rounding() const {
    if (output_.tensor->dtype != DType::kFp32 || rms_ == 0) return "";
    double squares = 0;
    for (const WrongValue& v : values_) {
      const double error = (v.got - v.expected) / std::max(std::fabs(v.expected), rms_);
      if (!(std::fabs(error) < 0.03)) return "";
      squares += error * error;
    }
    return "all errors are small (" +
           number(std::sqrt(squares / static_cast<double>(values_.size())), 2) +
           " of the scale): as of less precise arithmetic, or of a sum in an unlucky order";
  }

  const Shaped& output_;
  const std::vector<WrongValue>& values_;
  const std::vector<double>& expected_;
  double rms_;
  double close_;
};

}  // namespace

std::string value_pattern(const Shaped& output, const std::vector<WrongValue>& values,
                          const std::vector<double>& expected, double rms) {
  return values.empty() ? "" : Values(output, values, expected, rms).pattern();
}

}  // namespace kernelpro
