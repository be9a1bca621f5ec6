// SPDX-License-Identifier: Apache-2.0
#include "core/task/mismatch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parts.h"
#include "core/task/inputs.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPerThread = 1 << 18;  // fewer elements are not worth a thread
constexpr double kLargest = std::numeric_limits<double>::max();

struct Fp32 {
  using Stored = float;
  static double widen(Stored v) { return static_cast<double>(v); }
};
struct Fp16 {
  using Stored = unsigned short;
  static double widen(Stored v) { return static_cast<double>(kp::from_half(v)); }
};
struct Bf16 {
  using Stored = unsigned short;
  static double widen(Stored v) { return static_cast<double>(kp::from_bfloat16(v)); }
};

void merge(Comparison& into, const Comparison& part) {
  if (into.first < 0) into.first = part.first;
  into.wrong += part.wrong;
  into.worst = std::max(into.worst, part.worst);
}

// Both rules in one form: an element's error is |out - r| over its scale.
struct Scale {
  explicit Scale(const Expected& expected)
      : absolute(expected.rule.kind == Rule::Kind::kAllclose ? expected.rule.absolute : 0),
        relative(expected.rule.kind == Rule::Kind::kAllclose ? expected.rule.relative : 1),
        least(expected.rule.kind == Rule::Kind::kAllclose ? 0 : expected.scale),
        of_out(expected.rule.kind == Rule::Kind::kAllclose) {}
  double of(double out, double r) const {
    return absolute + relative * std::max(std::fabs(of_out ? out : r), least);
  }
  double absolute, relative, least;
  bool of_out;
};

template <class Type>
KERNELPRO_WIDE_PART Comparison compare_range(const void* data, const Expected& expected,
                                             std::int64_t begin, std::int64_t end) {
  const auto* out = static_cast<const typename Type::Stored*>(data);
  const double* values = expected.values.data();
  Comparison result;
  const Scale scale(expected);
  const double allowed = allowed_error(expected.rule);
  constexpr std::int64_t kBlock = 1024;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t stop = std::min(end, at + kBlock);
    // Fast path; anything not finite fails it.
    double worst = 0;
    int wrong = 0;
#pragma omp simd reduction(max : worst) reduction(| : wrong)
    for (std::int64_t i = at; i < stop; ++i) {
      const double r = values[i];
      const double got = Type::widen(out[i]);
      const double error = std::fabs(got - r);
      const double unit = scale.of(got, r);
      const double most = allowed * unit < kLargest ? allowed * unit : kLargest;
      wrong |= error <= most ? 0 : 1;
      const double scaled = unit > 0 ? error / unit : 0;
      worst = scaled > worst ? scaled : worst;
    }
    if (wrong == 0) {
      result.worst = std::max(result.worst, worst);
      continue;
    }
    for (std::int64_t i = at; i < stop; ++i) {
      const double error =
          element_error(expected.rule, Type::widen(out[i]), values[i], expected.scale);
      result.worst = std::max(result.worst, error);
      if (error <= allowed) continue;
      if (result.first < 0) result.first = i;
      ++result.wrong;
    }
  }
  return result;
}

KERNELPRO_WIDE Comparison compare_part(DType dtype, const void* data, const Expected& expected,
                                       std::int64_t begin, std::int64_t end) {
  switch (dtype) {
    case DType::kFp32:
      return compare_range<Fp32>(data, expected, begin, end);
    case DType::kFp16:
      return compare_range<Fp16>(data, expected, begin, end);
    default:
      return compare_range<Bf16>(data, expected, begin, end);
  }
}

Comparison compare_floating(const Shaped& output, const void* data, const Expected& expected) {
  std::vector<Comparison> parts(kMostParts);
  in_parts(output.elements, kPerThread, [&](std::int64_t begin, std::int64_t end, int part) {
    parts[static_cast<std::size_t>(part)] =
        compare_part(output.tensor->dtype, data, expected, begin, end);
  });
  Comparison result;
  for (const Comparison& part : parts) merge(result, part);
  return result;
}

// Integers and bools. allclose compares them as numbers, as torch.allclose does.
Comparison compare_integers(const Shaped& output, const void* data, const Expected& expected) {
  Comparison result;
  if (std::memcmp(data, expected.bytes.data(), expected.bytes.size()) == 0) return result;
  const DType dtype = output.tensor->dtype;
  const bool exact = expected.rule.kind == Rule::Kind::kScaled;
  const std::size_t size = static_cast<std::size_t>(dtype_bytes(dtype));
  for (std::int64_t i = 0; i < output.elements; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    if (std::memcmp(static_cast<const char*>(data) + at, expected.bytes.data() + at, size) == 0) {
      continue;
    }
    const double error = exact
                             ? std::numeric_limits<double>::infinity()
                             : element_error(expected.rule, element_as_double(dtype, data, i),
                                             element_as_double(dtype, expected.bytes.data(), i), 0);
    result.worst = std::max(result.worst, error);
    if (error <= allowed_error(expected.rule)) continue;
    if (result.first < 0) result.first = i;
    ++result.wrong;
  }
  return result;
}

KERNELPRO_WIDE void widen_part(DType dtype, const void* data, std::int64_t begin, std::int64_t end,
                               double* to) {
  if (dtype == DType::kFp32) {
    const auto* from = static_cast<const float*>(data);
    for (std::int64_t i = begin; i < end; ++i) to[i] = Fp32::widen(from[i]);
    return;
  }
  const auto* from = static_cast<const unsigned short*>(data);
  for (std::int64_t i = begin; i < end; ++i) {
    to[i] = dtype == DType::kFp16 ? Fp16::widen(from[i]) : Bf16::widen(from[i]);
  }
}

std::vector<double> as_doubles(const Shaped& output, const void* data, bool wide) {
  if (wide) {
    const auto* values = static_cast<const double*>(data);
    return {values, values + output.elements};
  }
  std::vector<double> values(static_cast<std::size_t>(output.elements));
  in_parts(output.elements, kPerThread, [&](std::int64_t begin, std::int64_t end, int) {
    widen_part(output.tensor->dtype, data, begin, end, values.data());
  });
  return values;
}

struct Squares {
  double sum = 0, count = 0;
};

KERNELPRO_WIDE Squares squares(const double* values, std::int64_t begin, std::int64_t end) {
  double sum = 0, count = 0;
#pragma omp simd reduction(+ : sum, count)
  for (std::int64_t i = begin; i < end; ++i) {
    const bool finite = std::fabs(values[i]) <= kLargest;
    sum += finite ? values[i] * values[i] : 0;
    count += finite ? 1 : 0;
  }
  return {sum, count};
}

double root_mean_square(const std::vector<double>& values) {
  std::vector<Squares> parts(kMostParts);
  in_parts(static_cast<std::int64_t>(values.size()), kPerThread,
           [&](std::int64_t begin, std::int64_t end, int part) {
             parts[static_cast<std::size_t>(part)] = squares(values.data(), begin, end);
           });
  Squares all;
  for (const Squares& part : parts) {
    all.sum += part.sum;
    all.count += part.count;
  }
  return all.count > 0 ? std::sqrt(all.sum / all.count) : 0;
}

std::vector<double> some_sizes(const std::vector<double>& values) {
  const auto count = static_cast<unsigned long long>(values.size());
  const auto samples = std::min<unsigned long long>(count, kScaleSample);
  std::vector<double> sizes;
  for (unsigned long long k = 0; k < samples; ++k) {
    sizes.push_back(std::fabs(values[kp::sample_place(k, samples, count)]));
  }
  return sizes;
}

}  // namespace

double allowed_error(const Rule& rule) {
  return rule.kind == Rule::Kind::kAllclose ? 1 : rule.tolerance;
}

double element_error(const Rule& rule, double out, double r, double scale) {
  const bool scaled = rule.kind == Rule::Kind::kScaled;
  if (out == r || (scaled && std::isnan(out) && std::isnan(r))) return 0;
  const double unit =
      scaled ? std::max(std::fabs(r), scale) : rule.absolute + rule.relative * std::fabs(out);
  const double error = std::fabs(out - r) / unit;
  const bool sensible = std::isfinite(error) && std::isfinite(r);
  return sensible ? error : std::numeric_limits<double>::infinity();
}

Expected make_expected(const Shaped& output, const void* data, const Rule& rule, bool wide) {
  Expected expected;
  expected.rule = rule;
  if (!is_floating(output.tensor->dtype)) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    expected.bytes.assign(bytes, bytes + output.bytes);
    return expected;
  }
  expected.values = as_doubles(output, data, wide);
  expected.rms = root_mean_square(expected.values);
  expected.scale = expected.rms;
  if (rule.typical) {
    expected.scale = scale_of(expected.rms, some_sizes(expected.values), output.tensor->dtype);
  }
  expected.scale = std::max(expected.scale, rule.least);
  return expected;
}

namespace {

// One look at all elements by the scale as it is.
struct Differences {
  double largest = 0;  // of elements that the scale must cover
  double worst = 0;    // of the others, over their own size
  double jumps = 0;
};

KERNELPRO_WIDE Differences differences(const double* other, const Expected& expected,
                                       std::int64_t begin, std::int64_t end) {
  const double* values = expected.values.data();
  const double rms = expected.rms, scale = expected.scale;
  const double mildly = kMildly * expected.rule.tolerance;
  double largest = 0, worst = 0, jumps = 0;
#pragma omp simd reduction(max : largest, worst) reduction(+ : jumps)
  for (std::int64_t i = begin; i < end; ++i) {
    const double size = std::fabs(values[i]);
    const double d = std::fabs(other[i] - values[i]);
    const bool counts = d > 0 && d <= kLargest;  // no NaN either
    const bool jump = counts && d > kJump * (size > rms ? size : rms);
    const bool covered = size <= scale || d > mildly * size;
    const double absolute = counts && !jump && covered ? d : 0;
    const double relative = counts && !jump && !covered ? d / size : 0;
    largest = absolute > largest ? absolute : largest;
    worst = relative > worst ? relative : worst;
    jumps += jump ? 1 : 0;
  }
  return {largest, worst, jumps};
}

}  // namespace

Admitted admit(const std::vector<double>& other, Expected* expected) {
  Admitted result;
  Rule& rule = expected->rule;
  if (rule.kind != Rule::Kind::kScaled || rule.tolerance <= 0) return result;
  const auto n = static_cast<std::int64_t>(std::min(other.size(), expected->values.size()));
  for (int round = 0; round < kAdmitRounds; ++round) {
    std::vector<Differences> parts(kMostParts);
    in_parts(n, kPerThread, [&](std::int64_t begin, std::int64_t end, int part) {
      parts[static_cast<std::size_t>(part)] = differences(other.data(), *expected, begin, end);
    });
    double largest = 0;
    result = {};
    for (const Differences& part : parts) {
      largest = std::max(largest, part.largest);
      result.worst = std::max(result.worst, part.worst);
      result.jumps += static_cast<std::uint64_t>(part.jumps);
    }
    if (largest <= rule.tolerance * expected->scale) break;
    rule.least = expected->scale = largest / rule.tolerance;
  }
  result.least = rule.least;
  return result;
}

Comparison compare_output(const Shaped& output, const void* data, const Expected& expected) {
  switch (output.tensor->dtype) {
    case DType::kFp32:
    case DType::kFp16:
    case DType::kBf16:
      return compare_floating(output, data, expected);
    case DType::kInt32:
    case DType::kInt64:
    case DType::kBool:
      return compare_integers(output, data, expected);
  }
  return {};
}

}  // namespace kernelpro
