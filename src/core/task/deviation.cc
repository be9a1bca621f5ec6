// SPDX-License-Identifier: Apache-2.0
#include "core/task/deviation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parts.h"
#include "core/task/inputs.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPerThread = 1 << 18;  // fewer elements are not worth a thread
constexpr double kLargest = std::numeric_limits<double>::max();

struct Errors {
  double errors = 0, sizes = 0, products = 0;  // sums of squares; of errors times values
  double relative = 0;                         // sum of squares
  double changed = 0, lost = 0, count = 0;
  double worst = 0, relative_worst = 0;
};

template <class Real>
KERNELPRO_WIDE_PART Errors errors_within(const Real* other, const Expected& expected,
                                         std::int64_t begin, std::int64_t end) {
  const double* values = expected.values.data();
  const double rms = expected.rms, scale = expected.scale;
  double errors = 0, sizes = 0, products = 0, relative = 0, changed = 0, lost = 0, count = 0;
  double worst = 0, relative_worst = 0;
#pragma omp simd reduction(+ : errors, sizes, products, relative, changed, lost, count) \
    reduction(max : worst, relative_worst)
  for (std::int64_t i = begin; i < end; ++i) {
    const double size = std::fabs(values[i]);
    const double error = other[i] - values[i];
    const double d = std::fabs(error);
    const bool counts = d <= kLargest;
    errors += counts ? d * d : 0;
    sizes += counts ? size * size : 0;
    products += counts ? error * values[i] : 0;
    count += counts ? 1 : 0;
    changed += counts && d > kChanged * size ? 1 : 0;
    lost += counts && d > kLostFrom * size && size >= kCountsFrom * rms ? 1 : 0;
    const double scaled = counts && d > 0 ? d / (size > rms ? size : rms) : 0;
    worst = scaled > worst ? scaled : worst;
    const double own = counts && d > 0 ? d / (size > scale ? size : scale) : 0;
    relative += own * own;
    relative_worst = own > relative_worst ? own : relative_worst;
  }
  return {errors, sizes, products, relative, changed, lost, count, worst, relative_worst};
}

KERNELPRO_WIDE Errors errors_of(const double* other, const Expected& expected, std::int64_t begin,
                                std::int64_t end) {
  return errors_within(other, expected, begin, end);
}
KERNELPRO_WIDE Errors errors_of(const float* other, const Expected& expected, std::int64_t begin,
                                std::int64_t end) {
  return errors_within(other, expected, begin, end);
}

void add(const Errors& part, Errors* all) {
  all->errors += part.errors;
  all->sizes += part.sizes;
  all->products += part.products;
  all->relative += part.relative;
  all->changed += part.changed;
  all->lost += part.lost;
  all->count += part.count;
  all->worst = std::max(all->worst, part.worst);
  all->relative_worst = std::max(all->relative_worst, part.relative_worst);
}

Deviation summary(const Errors& all) {
  Deviation found;
  found.norm = all.sizes > 0 ? std::sqrt(all.errors / all.sizes) : 0;
  found.common = all.sizes > 0 ? all.products / all.sizes : 0;
  found.worst = all.worst;
  found.relative = all.count > 0 ? std::sqrt(all.relative / all.count) : 0;
  found.relative_worst = all.relative_worst;
  found.changed = all.count > 0 ? all.changed / all.count : 0;
  found.lost = all.count > 0 ? all.lost / all.count : 0;
  return found;
}

template <class Real>
KERNELPRO_WIDE_PART double counted_error(Real other, double value, double common) {
  const double error = static_cast<double>(other) - value - common * value;
  return std::fabs(error) <= kLargest ? error : 0;
}

// Adds the errors of rows [begin, end), as many elements as `inner` each, to their groups' sums.
template <class Real>
KERNELPRO_WIDE_PART void add_rows(const Real* other, const double* values, double common,
                                  const MeanAxis& axis, std::int64_t begin, std::int64_t end,
                                  double* sums) {
  const std::int64_t inner = axis.inner;
  std::int64_t o = begin / axis.length, k = begin % axis.length;
  for (std::int64_t row = begin; row < end; ++row) {
    const Real* from = other + row * inner;
    const double* wanted = values + row * inner;
    if (axis.across) {
      double one = 0;
#pragma omp simd reduction(+ : one)
      for (std::int64_t n = 0; n < inner; ++n) one += counted_error(from[n], wanted[n], common);
      sums[k] += one;
    } else {
      double* to = sums + o * inner;
#pragma omp simd
      for (std::int64_t n = 0; n < inner; ++n) to[n] += counted_error(from[n], wanted[n], common);
    }
    if (++k == axis.length) k = 0, ++o;
  }
}
KERNELPRO_WIDE void add_errors(const double* other, const double* values, double common,
                               const MeanAxis& axis, std::int64_t begin, std::int64_t end,
                               double* sums) {
  add_rows(other, values, common, axis, begin, end, sums);
}
KERNELPRO_WIDE void add_errors(const float* other, const double* values, double common,
                               const MeanAxis& axis, std::int64_t begin, std::int64_t end,
                               double* sums) {
  add_rows(other, values, common, axis, begin, end, sums);
}

// The same groups with rows that are as long as can be: along the last axis, each row is a group.
MeanAxis in_long_rows(const MeanAxis& axis) {
  if (axis.inner > 1) return axis;
  if (axis.across) return {1, axis.outer, axis.length, false};
  return {1, axis.outer, axis.length, true};
}

// The root mean square of the groups' mean errors.
template <class Real>
double mean_errors(const Real* other, const Expected& expected, double common,
                   const MeanAxis& wanted) {
  constexpr std::int64_t kMostSums = 1 << 22;  // of all threads: each has its own
  const MeanAxis axis = in_long_rows(wanted);
  const std::int64_t rows = axis.outer * axis.length, groups = axis.groups();
  const std::int64_t threads = std::clamp<std::int64_t>(kMostSums / groups, 1, kMostParts);
  const std::int64_t least = std::max({std::int64_t{1}, kPerThread / axis.inner, rows / threads});
  std::vector<std::vector<double>> parts(kMostParts);
  const auto add_part = [&](std::int64_t begin, std::int64_t end, int part) {
    std::vector<double>& sums = parts[static_cast<std::size_t>(part)];
    sums.resize(static_cast<std::size_t>(groups));
    add_errors(other, expected.values.data(), common, axis, begin, end, sums.data());
  };
  in_parts(rows, least, add_part, 1);
  std::vector<double>& all = parts.front();
  for (std::size_t part = 1; part < parts.size(); ++part) {
    for (std::size_t group = 0; group < parts[part].size(); ++group)
      all[group] += parts[part][group];
  }
  double squares = 0;
  for (const double sum : all) squares += sum * sum;
  return std::sqrt(squares / static_cast<double>(groups)) / static_cast<double>(axis.averaged());
}

// The value of a half type's bits, and the next one above in size.
double half_value(DType dtype, unsigned bits) {
  if (dtype == DType::kFp16) {
    return bits == 0x7c00u ? 65536
                           : static_cast<double>(kp::from_half(static_cast<unsigned short>(bits)));
  }
  return static_cast<double>(kp::from_bfloat16(static_cast<unsigned short>(bits)));
}

// Of the values that are rounded to an element, the nearest to `wanted`.
double nearest_before_rounding(DType dtype, unsigned short bits, double wanted) {
  const unsigned size = bits & 0x7fffu;
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  const unsigned infinity = dtype == DType::kFp16 ? 0x7c00u : 0x7f80u;
  const double value = half_value(dtype, size);
  if (size > infinity) return std::numeric_limits<double>::quiet_NaN();
  if (size == infinity) return sign * std::numeric_limits<double>::infinity();
  if (!std::isfinite(wanted)) return sign * value;
  const double above = half_value(dtype, size + 1);
  const double below = size > 0 ? half_value(dtype, size - 1) : -above;
  const double least = (value + below) / 2;
  const double most = std::isfinite(above) ? (value + above) / 2 : value;
  return sign * std::clamp(sign * wanted, least, most);
}

template <class Real>
Deviation deviation_of(const Real* other, std::size_t size, const Expected& expected,
                       const std::vector<std::int64_t>& shape) {
  std::vector<Errors> parts(kMostParts);
  const auto n = static_cast<std::int64_t>(std::min(size, expected.values.size()));
  in_parts(n, kPerThread, [&](std::int64_t begin, std::int64_t end, int part) {
    parts[static_cast<std::size_t>(part)] = errors_of(other, expected, begin, end);
  });
  Errors all;
  for (const Errors& part : parts) add(part, &all);
  Deviation found = summary(all);
  const double rms = all.count > 0 ? std::sqrt(all.sizes / all.count) : 0;
  for (const MeanAxis& axis : mean_axes(shape)) {
    const double mean = rms > 0 ? mean_errors(other, expected, found.common, axis) / rms : 0;
    found.means.push_back(mean);
  }
  return found;
}

}  // namespace

std::vector<MeanAxis> mean_axes(const std::vector<std::int64_t>& shape) {
  std::vector<MeanAxis> all;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    MeanAxis one;
    one.length = shape[axis];
    for (std::size_t d = 0; d < axis; ++d) one.outer *= shape[d];
    for (std::size_t d = axis + 1; d < shape.size(); ++d) one.inner *= shape[d];
    for (const bool across : {false, true}) {
      one.across = across;
      if (across && shape.size() < 3) continue;  // the mean along the other axis
      if (one.groups() < kFewestGroups || one.averaged() < kFewestMeans) continue;
      all.push_back(one);
    }
  }
  return all;
}

Deviation deviation(const std::vector<double>& other, const Expected& expected,
                    const std::vector<std::int64_t>& shape) {
  return deviation_of(other.data(), other.size(), expected, shape);
}

Deviation deviation(const Shaped& output, const void* data, const Expected& expected) {
  const DType dtype = output.tensor->dtype;
  if (!is_floating(dtype)) return {};
  const auto n = static_cast<std::size_t>(output.elements);
  if (dtype == DType::kFp32) {
    return deviation_of(static_cast<const float*>(data), n, expected, output.shape);
  }
  std::vector<double> values(n);
  in_parts(output.elements, kPerThread, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      values[at] = nearest_before_rounding(dtype, static_cast<const unsigned short*>(data)[i],
                                           expected.values[at]);
    }
  });
  return deviation(values, expected, output.shape);
}

void raise(const Deviation& by, double times, Deviation* to) {
  to->norm = std::max(to->norm, times * by.norm);
  to->worst = std::max(to->worst, by.worst);
  to->relative = std::max(to->relative, times * by.relative);
  to->relative_worst = std::max(to->relative_worst, by.relative_worst);
  to->changed = std::max(to->changed, by.changed);
  to->lost = std::max(to->lost, by.lost);
  to->means.resize(std::max(to->means.size(), by.means.size()));
  for (std::size_t i = 0; i < by.means.size(); ++i) {
    to->means[i] = std::max(to->means[i], times * by.means[i]);
  }
}

}  // namespace kernelpro
