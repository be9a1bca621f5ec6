// SPDX-License-Identifier: Apache-2.0
#include "core/task/mismatch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "base/text.h"
#include "core/task/inputs.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPerThread = 1 << 20;  // fewer elements are not worth a thread

// Runs `work(begin, end, part)` over [0, n) on as many threads as pay off; returns the part count.
template <class Work>
void in_parts(std::int64_t n, int max_parts, const Work& work) {
  const std::int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  const int parts = static_cast<int>(
      std::clamp<std::int64_t>(n / kPerThread, 1, std::min<std::int64_t>(threads, max_parts)));
  const auto bound = [&](int part) { return n * part / parts; };
  std::vector<std::thread> others;
  for (int part = 1; part < parts; ++part) {
    others.emplace_back([&, part] { work(bound(part), bound(part + 1), part); });
  }
  work(0, bound(1), 0);
  for (std::thread& thread : others) thread.join();
}

constexpr int kMaxParts = 64;
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
Comparison compare_range(const typename Type::Stored* out, const Expected& expected,
                         std::int64_t begin, std::int64_t end) {
  Comparison result;
  const Scale scale(expected);
  const double allowed = allowed_error(expected.rule);
  constexpr std::int64_t kBlock = 1024;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t stop = std::min(end, at + kBlock);
    // Fast path, in a form that the compiler vectorizes; anything not finite fails it.
    double worst = 0;
    bool fine = true;
    for (std::int64_t i = at; i < stop; ++i) {
      const double r = expected.values[static_cast<std::size_t>(i)];
      const double got = Type::widen(out[i]);
      const double error = std::fabs(got - r);
      const double unit = scale.of(got, r);
      fine &= error <= std::min(allowed * unit, kLargest);
      const double scaled = unit > 0 ? error / unit : 0;
      worst = scaled > worst ? scaled : worst;
    }
    if (fine) {
      result.worst = std::max(result.worst, worst);
      continue;
    }
    for (std::int64_t i = at; i < stop; ++i) {
      const double error =
          element_error(expected.rule, Type::widen(out[i]),
                        expected.values[static_cast<std::size_t>(i)], expected.scale);
      result.worst = std::max(result.worst, error);
      if (error <= allowed) continue;
      if (result.first < 0) result.first = i;
      ++result.wrong;
    }
  }
  return result;
}

template <class Type>
Comparison compare_floating(const Shaped& output, const void* data, const Expected& expected) {
  std::vector<Comparison> parts(kMaxParts);
  in_parts(output.elements, kMaxParts, [&](std::int64_t begin, std::int64_t end, int part) {
    parts[static_cast<std::size_t>(part)] =
        compare_range<Type>(static_cast<const typename Type::Stored*>(data), expected, begin, end);
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

template <class Type>
void widen_all(const void* data, std::int64_t n, double* to) {
  const auto* from = static_cast<const typename Type::Stored*>(data);
  in_parts(n, kMaxParts, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = Type::widen(from[i]);
  });
}

std::vector<double> as_doubles(const Shaped& output, const void* data, bool wide) {
  if (wide) {
    const auto* values = static_cast<const double*>(data);
    return {values, values + output.elements};
  }
  std::vector<double> values(static_cast<std::size_t>(output.elements));
  switch (output.tensor->dtype) {
    case DType::kFp32:
      widen_all<Fp32>(data, output.elements, values.data());
      break;
    case DType::kFp16:
      widen_all<Fp16>(data, output.elements, values.data());
      break;
    default:
      widen_all<Bf16>(data, output.elements, values.data());
      break;
  }
  return values;
}

double root_mean_square(const std::vector<double>& values) {
  std::vector<double> sums(kMaxParts, 0.0), counts(kMaxParts, 0.0);
  const auto n = static_cast<std::int64_t>(values.size());
  in_parts(n, kMaxParts, [&](std::int64_t begin, std::int64_t end, int part) {
    double sum = 0, count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const double v = values[static_cast<std::size_t>(i)];
      if (!std::isfinite(v)) continue;
      sum += v * v;
      ++count;
    }
    sums[static_cast<std::size_t>(part)] = sum;
    counts[static_cast<std::size_t>(part)] = count;
  });
  const double count = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  return count > 0 ? std::sqrt(sum / count) : 0;
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

Admitted admit(const std::vector<double>& other, Expected* expected) {
  Admitted result;
  Rule& rule = expected->rule;
  if (rule.kind != Rule::Kind::kScaled || rule.tolerance <= 0) return result;
  const std::size_t n = std::min(other.size(), expected->values.size());
  for (int round = 0; round < kAdmitRounds; ++round) {
    double largest = 0;
    result = {};
    for (std::size_t i = 0; i < n; ++i) {
      const double size = std::fabs(expected->values[i]);
      const double d = std::fabs(other[i] - expected->values[i]);
      if (!std::isfinite(d) || d == 0) continue;
      if (d > kJump * std::max(size, expected->rms)) {
        ++result.jumps;
      } else if (size <= expected->scale || d > kMildly * rule.tolerance * size) {
        largest = std::max(largest, d);
      } else {
        result.worst = std::max(result.worst, d / size);
      }
    }
    if (largest <= rule.tolerance * expected->scale) break;
    rule.least = expected->scale = largest / rule.tolerance;
  }
  result.least = rule.least;
  return result;
}

Deviation deviation(const std::vector<double>& other, const Expected& expected) {
  Deviation result;
  double errors = 0, sizes = 0;
  for (std::size_t i = 0; i < std::min(other.size(), expected.values.size()); ++i) {
    const double r = expected.values[i], d = std::fabs(other[i] - r);
    if (!std::isfinite(d)) continue;
    errors += d * d;
    sizes += r * r;
    if (d > 0) result.worst = std::max(result.worst, d / std::max(std::fabs(r), expected.rms));
  }
  result.norm = sizes > 0 ? std::sqrt(errors / sizes) : 0;
  return result;
}

Deviation deviation(const Shaped& output, const void* data, const Expected& expected) {
  if (!is_floating(output.tensor->dtype)) return {};
  return deviation(as_doubles(output, data, false), expected);
}

Comparison compare_output(const Shaped& output, const void* data, const Expected& expected) {
  switch (output.tensor->dtype) {
    case DType::kFp32:
      return compare_floating<Fp32>(output, data, expected);
    case DType::kFp16:
      return compare_floating<Fp16>(output, data, expected);
    case DType::kBf16:
      return compare_floating<Bf16>(output, data, expected);
    case DType::kInt32:
    case DType::kInt64:
    case DType::kBool:
      return compare_integers(output, data, expected);
  }
  return {};
}

}  // namespace kernelpro
