// SPDX-License-Identifier: Apache-2.0
#include "core/mismatch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "base/text.h"
#include "core/inputs.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPerThread = 1 << 20;  // elements below which a thread does not pay

// Runs `work(begin, end, part)` over [0, n) on as many threads as pay; returns how many parts.
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

// |out - r| / max(|r|, s), or infinity where that makes no sense; NaN matches NaN, and an infinity
// its like.
double scaled_error(double out, double r, double s) {
  if (out == r || (std::isnan(out) && std::isnan(r))) return 0;
  const double error = std::fabs(out - r) / std::max(std::fabs(r), s);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

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

template <class Type>
Comparison compare_range(const typename Type::Stored* out, const Expected& expected,
                         double tolerance, std::int64_t begin, std::int64_t end) {
  Comparison result;
  constexpr std::int64_t kBlock = 1024;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t stop = std::min(end, at + kBlock);
    // The common case first, in a form that the compiler makes vectors of: NaN makes it fail.
    double worst = 0;
    bool fine = true;
    for (std::int64_t i = at; i < stop; ++i) {
      const double r = expected.values[static_cast<std::size_t>(i)];
      const double error = std::fabs(Type::widen(out[i]) - r);
      const double scale = std::max(std::fabs(r), expected.rms);
      fine &= error <= tolerance * scale;
      const double scaled = scale > 0 ? error / scale : 0;
      worst = scaled > worst ? scaled : worst;
    }
    if (fine) {
      result.worst = std::max(result.worst, worst);
      continue;
    }
    for (std::int64_t i = at; i < stop; ++i) {
      const double error = scaled_error(Type::widen(out[i]),
                                        expected.values[static_cast<std::size_t>(i)], expected.rms);
      result.worst = std::max(result.worst, error);
      if (error <= tolerance) continue;
      if (result.first < 0) result.first = i;
      ++result.wrong;
    }
  }
  return result;
}

template <class Type>
Comparison compare_floating(const Shaped& output, const void* data, const Expected& expected) {
  const double tolerance = tolerance_of(*output.tensor);
  std::vector<Comparison> parts(kMaxParts);
  in_parts(output.elements, kMaxParts, [&](std::int64_t begin, std::int64_t end, int part) {
    parts[static_cast<std::size_t>(part)] = compare_range<Type>(
        static_cast<const typename Type::Stored*>(data), expected, tolerance, begin, end);
  });
  Comparison result;
  for (const Comparison& part : parts) merge(result, part);
  return result;
}

Comparison compare_exact(const Shaped& output, const void* data, const Expected& expected) {
  Comparison result;
  if (std::memcmp(data, expected.bytes.data(), expected.bytes.size()) == 0) return result;
  const std::size_t size = static_cast<std::size_t>(dtype_bytes(output.tensor->dtype));
  for (std::int64_t i = 0; i < output.elements; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    if (std::memcmp(static_cast<const char*>(data) + at, expected.bytes.data() + at, size) == 0) {
      continue;
    }
    if (result.first < 0) result.first = i;
    ++result.wrong;
  }
  if (result.wrong > 0) result.worst = std::numeric_limits<double>::infinity();
  return result;
}

}  // namespace

Expected make_expected(const Shaped& output, const void* data) {
  Expected expected;
  if (!is_floating(output.tensor->dtype)) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    expected.bytes.assign(bytes, bytes + output.bytes);
    return expected;
  }
  const auto* values = static_cast<const double*>(data);
  expected.values.assign(values, values + output.elements);
  std::vector<double> sums(kMaxParts, 0.0), counts(kMaxParts, 0.0);
  in_parts(output.elements, kMaxParts, [&](std::int64_t begin, std::int64_t end, int part) {
    double sum = 0, count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const double v = values[i];
      if (!std::isfinite(v)) continue;
      sum += v * v;
      ++count;
    }
    sums[static_cast<std::size_t>(part)] = sum;
    counts[static_cast<std::size_t>(part)] = count;
  });
  const double count = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  expected.rms = count > 0 ? std::sqrt(sum / count) : 0;
  return expected;
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
      return compare_exact(output, data, expected);
  }
  return {};
}

}  // namespace kernelpro
