// SPDX-License-Identifier: Apache-2.0
// The loops of core/task/shapes.h over a tensor's elements.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parts.h"
#include "core/task/shapes.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPerThread = 1 << 17;  // fewer elements are not worth a thread

// ---- What the values are like

// REQUIRES: begin > 0.
KERNELPRO_WIDE Surveyed survey_floats(const float* values, std::int64_t begin, std::int64_t end) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  float low = std::numeric_limits<float>::infinity(), high = -low;
  int falls = 0, broken = 0;
#pragma omp simd reduction(min : low) reduction(max : high) reduction(| : falls, broken)
  for (std::int64_t i = begin; i < end; ++i) {
    const float v = values[i];
    falls |= v >= values[i - 1] ? 0 : 1;
    const bool finite = std::fabs(v) <= kLargest;
    broken |= finite && v != std::trunc(v) ? 1 : 0;
    low = finite && v < low ? v : low;
    high = finite && v > high ? v : high;
  }
  return {static_cast<double>(low), static_cast<double>(high), falls == 0, broken == 0};
}

Surveyed survey_any(DType dtype, const char* data, std::int64_t begin, std::int64_t end) {
  Surveyed s{INFINITY, -INFINITY, true, true};
  double before = begin > 0 ? element_as_double(dtype, data, begin - 1) : -INFINITY;
  for (std::int64_t i = begin; i < end; ++i) {
    const double v = element_as_double(dtype, data, i);
    s.rises = s.rises && v >= before;
    before = v;
    if (!std::isfinite(v)) continue;
    s.whole = s.whole && v == std::trunc(v);
    s.low = std::min(s.low, v);
    s.high = std::max(s.high, v);
  }
  return s;
}

void merge(Surveyed* all, const Surveyed& part) {
  all->low = std::min(all->low, part.low);
  all->high = std::max(all->high, part.high);
  all->rises = all->rises && part.rises;
  all->whole = all->whole && part.whole;
}

Surveyed survey_part(DType dtype, const char* data, std::int64_t begin, std::int64_t end) {
  if (dtype != DType::kFp32) return survey_any(dtype, data, begin, end);
  const std::int64_t first = std::min(end, std::max<std::int64_t>(begin, 1));
  Surveyed s = survey_any(dtype, data, begin, first);
  merge(&s, survey_floats(reinterpret_cast<const float*>(data), first, end));
  return s;
}

Surveyed survey(DType dtype, std::int64_t count, const char* data) {
  std::vector<Surveyed> parts(kMostParts, Surveyed{INFINITY, -INFINITY, true, true});
  in_parts(count, kPerThread, [&](std::int64_t begin, std::int64_t end, int part) {
    parts[static_cast<std::size_t>(part)] = survey_part(dtype, data, begin, end);
  });
  Surveyed all = parts[0];
  for (const Surveyed& part : parts) merge(&all, part);
  if (all.low > all.high) all.low = all.high = 0;
  return all;
}

// ---- Changing them

using u64 = unsigned long long;

template <int kShape>
KERNELPRO_WIDE_PART bool reshape_floats(kp::ShapeSpec spec, u64 key, std::int64_t begin,
                                        std::int64_t end, unsigned* words) {
  spec.shape = kShape;
  spec.dtype = 0;
  unsigned changed = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto after =
        static_cast<unsigned>(kp::reshaped_bits(spec, key, static_cast<u64>(i), words[i]));
    changed |= after ^ words[i];
    words[i] = after;
  }
  return changed != 0;
}

KERNELPRO_WIDE bool reshape_part(const kp::ShapeSpec& spec, u64 key, std::int64_t begin,
                                 std::int64_t end, unsigned* words) {
  switch (spec.shape) {
    case kp::kPowerOfTwo:
    case kp::kGrow:
      return reshape_floats<kp::kPowerOfTwo>(spec, key, begin, end, words);
    case kp::kHeavy:
      return reshape_floats<kp::kHeavy>(spec, key, begin, end, words);
    case kp::kRepeated:
      return reshape_floats<kp::kRepeated>(spec, key, begin, end, words);
    case kp::kRows:
      return reshape_floats<kp::kRows>(spec, key, begin, end, words);
    case kp::kTop:
      return reshape_floats<kp::kTop>(spec, key, begin, end, words);
    case kp::kSparse:
      return reshape_floats<kp::kSparse>(spec, key, begin, end, words);
    case kp::kFew:
      return reshape_floats<kp::kFew>(spec, key, begin, end, words);
    case kp::kOutlier:
      return reshape_floats<kp::kOutlier>(spec, key, begin, end, words);
    case kp::kBackground:
      return reshape_floats<kp::kBackground>(spec, key, begin, end, words);
    case kp::kSlabs:
      return reshape_floats<kp::kSlabs>(spec, key, begin, end, words);
    case kp::kNudge:
      return reshape_floats<kp::kNudge>(spec, key, begin, end, words);
    case kp::kJitter:
      return reshape_floats<kp::kJitter>(spec, key, begin, end, words);
    case kp::kFractions:
      return reshape_floats<kp::kFractions>(spec, key, begin, end, words);
    default:
      break;
  }
  unsigned changed = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto after =
        static_cast<unsigned>(kp::reshaped_bits(spec, key, static_cast<u64>(i), words[i]));
    changed |= after ^ words[i];
    words[i] = after;
  }
  return changed != 0;
}

bool reshape_any(const kp::ShapeSpec& spec, u64 key, std::int64_t begin, std::int64_t end,
                 char* data) {
  const auto size = static_cast<std::size_t>(dtype_bytes(static_cast<DType>(spec.dtype)));
  bool changed = false;
  for (std::int64_t i = begin; i < end; ++i) {
    char* const at = data + static_cast<std::size_t>(i) * size;
    u64 before = 0;
    std::memcpy(&before, at, size);
    const u64 after = kp::reshaped_bits(spec, key, static_cast<u64>(i), before);
    changed = changed || after != before;
    std::memcpy(at, &after, size);
  }
  return changed;
}

KERNELPRO_WIDE void lean_part(u64 digits, std::int64_t begin, std::int64_t end, unsigned* words) {
  for (std::int64_t i = begin; i < end; ++i) {
    words[i] = kp::lean_bits(words[i], digits, static_cast<u64>(i));
  }
}

}  // namespace

bool reshape(kp::ShapeSpec spec, std::uint64_t key, std::vector<char>* data) {
  const auto dtype = static_cast<DType>(spec.dtype);
  const auto count = static_cast<std::int64_t>(data->size()) / dtype_bytes(dtype);
  if (wants_survey(spec) && !fit(survey(dtype, count, data->data()), &spec)) return false;
  std::array<bool, kMostParts> changed{};
  in_parts(count, kPerThread, [&](std::int64_t begin, std::int64_t end, int part) {
    changed[static_cast<std::size_t>(part)] =
        dtype == DType::kFp32
            ? reshape_part(spec, key, begin, end, reinterpret_cast<unsigned*>(data->data()))
            : reshape_any(spec, key, begin, end, data->data());
  });
  return std::find(changed.begin(), changed.end(), true) != changed.end();
}

void lean(std::uint64_t digits, std::vector<char>* floats) {
  in_parts(static_cast<std::int64_t>(floats->size() / 4), kPerThread,
           [&](std::int64_t begin, std::int64_t end, int) {
             lean_part(digits, begin, end, reinterpret_cast<unsigned*>(floats->data()));
           });
}

}  // namespace kernelpro
