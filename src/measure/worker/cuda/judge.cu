// SPDX-License-Identifier: Apache-2.0
// The judge's own kernels, compiled by NVRTC for the current GPU, in one module with gpu_state.cu.
// Trusted: this module contains no candidate code. All use grid-stride loops over 64-bit indices.
#include "draw.h"
#include "shapes.h"

typedef unsigned long long u64;

__device__ inline u64 first_index() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }
__device__ inline u64 stride() { return (u64)gridDim.x * blockDim.x; }

__device__ inline int element_bytes(int dtype) {
  return dtype == 0 || dtype == 3 ? 4 : dtype == 4 ? 8 : dtype == 5 ? 1 : 2;
}

__device__ inline u64 load_bits(const void* data, int dtype, u64 i) {
  switch (element_bytes(dtype)) {
    case 1:
      return static_cast<const unsigned char*>(data)[i];
    case 2:
      return static_cast<const unsigned short*>(data)[i];
    case 4:
      return static_cast<const unsigned*>(data)[i];
    default:
      return static_cast<const u64*>(data)[i];
  }
}

__device__ inline double as_double(u64 bits, int dtype) {
  switch (dtype) {
    case 0:
      return kp::bits_float(static_cast<unsigned>(bits));
    case 1:
      return kp::from_half(static_cast<unsigned short>(bits));
    case 2:
      return kp::from_bfloat16(static_cast<unsigned short>(bits));
    case 3:
      return static_cast<int>(bits);
    case 4:
      return static_cast<double>(static_cast<long long>(bits));
    default:
      return bits != 0 ? 1.0 : 0.0;
  }
}

__device__ inline void store_bits(void* out, int dtype, u64 i, u64 bits) {
  switch (element_bytes(dtype)) {
    case 1:
      static_cast<unsigned char*>(out)[i] = static_cast<unsigned char>(bits);
      break;
    case 2:
      static_cast<unsigned short*>(out)[i] = static_cast<unsigned short>(bits);
      break;
    case 4:
      static_cast<unsigned*>(out)[i] = static_cast<unsigned>(bits);
      break;
    default:
      static_cast<u64*>(out)[i] = bits;
  }
}

// Calls `use(i, bits)` with the drawn bits of each element, a block of the stream at a time.
// `kElements`: block_elements(spec), known to the compiler, so that blocks stay in registers.
template <int kElements, class Use>
__device__ inline void for_drawn(const kp::DrawSpec& spec, const kp::Key& key, u64 tensor,
                                 u64 count, const Use& use) {
  for (u64 b = first_index(); b * kElements < count; b += stride()) {
    const kp::Block block = kp::chacha(key, tensor, b);
#pragma unroll
    for (int place = 0; place < kElements; ++place) {
      const u64 i = b * kElements + place;
      if (i < count) use(i, kp::draw_bits(spec, block, place));
    }
  }
}
template <class Use>
__device__ inline void for_drawn(const kp::DrawSpec& spec, const kp::Key& key, u64 tensor,
                                 u64 count, const Use& use) {
  if (kp::block_elements(spec) == 2) {
    for_drawn<2>(spec, key, tensor, count, use);
  } else {
    for_drawn<8>(spec, key, tensor, count, use);
  }
}

extern "C" __global__ void draw(void* out, kp::DrawSpec spec, kp::Key key, u64 tensor, u64 count) {
  for_drawn(spec, key, tensor, count,
            [&](u64 i, u64 bits) { store_bits(out, spec.dtype, i, bits); });
}

// Poison: 32-bit words that depend on the key and the place. The key also picks the kind, so that
// no property identifies poison: noise, large values, values that look like results, NaN.
__device__ inline unsigned poison_word(u64 key, u64 i) {
  const unsigned noise = static_cast<unsigned>(kp::mix64(key + i));
  switch (key >> 62) {
    case 0:
      return noise | 0x40000000u;
    case 1:
      return noise;
    case 2:
      return (noise & 0x80ffffffu) | 0x3e000000u;  // fp32: +-[0.125, 2)
    default:
      return noise | 0x7fc00000u;
  }
}

extern "C" __global__ void poison(unsigned* words, u64 key, u64 count) {
  for (u64 i = first_index(); i < count; i += stride()) words[i] = poison_word(key, i);
}

extern "C" __global__ void poison_range(unsigned* words, u64 key, u64 from, u64 to) {
  for (u64 i = from + first_index(); i < to; i += stride()) words[i] = poison_word(key, i);
}

// Results are zero before a kernel adds to them; the smallest index is stored as the largest of its
// complement.
struct Found {
  u64 count, first_complement;
};
__device__ inline void found(Found* result, u64 i) {
  atomicAdd(&result->count, 1ull);
  atomicMax(&result->first_complement, ~i);
}

// Counts words in [from, to) that no longer hold their poison. The first `skip` bytes of the first
// word do not count: a tensor ends there.
extern "C" __global__ void check_poison(const unsigned* words, u64 key, u64 from, u64 to,
                                        unsigned skip, Found* result) {
  for (u64 i = from + first_index(); i < to; i += stride()) {
    const unsigned counts = i == from ? ~0u << 8 * skip : ~0u;
    if (((words[i] ^ poison_word(key, i)) & counts) != 0) found(result, i);
  }
}

// Counts elements that no longer hold their drawn value.
extern "C" __global__ void check_inputs(const void* data, kp::DrawSpec spec, kp::Key key,
                                        u64 tensor, u64 count, Found* result) {
  for_drawn(spec, key, tensor, count, [&](u64 i, u64 bits) {
    if (load_bits(data, spec.dtype, i) != bits) found(result, i);
  });
}

__device__ inline u64 sealed_word(u64 word, u64 i, u64 key) {
  return kp::mix64(word * 0x9e3779b97f4a7c15ull + kp::mix64(key + i));
}

// A position-dependent sum over all bytes: two contents do not get the same sum by chance. `data`
// is 16-byte aligned.
extern "C" __global__ void seal(const unsigned char* data, u64 bytes, u64 key, u64* out) {
  const ulonglong2* pairs = reinterpret_cast<const ulonglong2*>(data);
  const u64 count = bytes / 16;
  u64 sum = 0;
  for (u64 i = first_index(); i < count; i += stride()) {
    const ulonglong2 v = pairs[i];
    sum += sealed_word(v.x, 2 * i, key) + sealed_word(v.y, 2 * i + 1, key);
  }
  if (first_index() == 0) {
    for (u64 at = count * 16; at < bytes; ++at) sum += sealed_word(data[at], ~at, key);
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

// Maps doubles so that unsigned comparison orders them.
__device__ inline u64 ordered(double v) {
  const u64 bits = __double_as_longlong(v);
  return bits >> 63 ? ~bits : bits | (1ull << 63);
}

struct Summary {
  double sum_squares;
  u64 low_complement, high;  // ordered() of the least (complemented) and largest value
  u64 not_finite;
};

// Expected results of floating outputs are doubles when `wide`, else the output's own type.
__device__ inline double expected_value(const void* expected, int dtype, int wide, u64 i) {
  return wide ? static_cast<const double*>(expected)[i]
              : as_double(load_bits(expected, dtype, i), dtype);
}

extern "C" __global__ void summarize(const void* expected, int dtype, int wide, u64 count,
                                     Summary* out) {
  double squares = 0;
  u64 low = 0, high = 0, not_finite = 0;
  for (u64 i = first_index(); i < count; i += stride()) {
    const double v = expected_value(expected, dtype, wide, i);
    if (!isfinite(v)) {
      ++not_finite;
      continue;
    }
    squares += v * v;
    low = max(low, ~ordered(v));
    high = max(high, ordered(v));
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    squares += __shfl_down_sync(~0u, squares, lane);
    low = max(low, __shfl_down_sync(~0u, low, lane));
    high = max(high, __shfl_down_sync(~0u, high, lane));
    not_finite += __shfl_down_sync(~0u, not_finite, lane);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&out->sum_squares, squares);
    atomicMax(&out->low_complement, low);
    atomicMax(&out->high, high);
    atomicAdd(&out->not_finite, not_finite);
  }
}

// Magnitudes of some expected values (core/task/policy.h, scale_of).
extern "C" __global__ void sample_sizes(const void* expected, int dtype, int wide, u64 samples,
                                        u64 count, double* out) {
  for (u64 k = first_index(); k < samples; k += stride()) {
    out[k] = fabs(expected_value(expected, dtype, wide, kp::sample_place(k, samples, count)));
  }
}

// Counts words that differ between two buffers: does a reference agree with itself?
extern "C" __global__ void count_differences(const unsigned* a, const unsigned* b, u64 count,
                                             u64* out) {
  for (u64 i = first_index(); i < count; i += stride()) {
    if (a[i] != b[i]) atomicAdd(out, 1ull);
  }
}

struct Comparison {
  u64 bad, not_a_number, unwritten;
  u64 first_complement, last;  // bad indices
  u64 worst;                   // bits of the largest error, a non-negative double
};

// core/task/policy.h's Rule, with the tensor properties that it needs.
struct RuleSpec {
  int dtype;
  int floating;
  int wide;
  int allclose;
  double tolerance, absolute, relative;
  double scale;
};

struct Judged {
  bool ok;
  double error;  // scaled: over the scale; allclose: over the allowance
  double got;
};

__device__ inline Judged judge_element(const void* out, const void* expected, const RuleSpec& rule,
                                       u64 i) {
  const double infinity = __longlong_as_double(0x7ff0000000000000ll);
  const u64 bits = load_bits(out, rule.dtype, i);
  const double got = as_double(bits, rule.dtype);
  if (!rule.floating && !rule.allclose) {
    const bool same = bits == load_bits(expected, rule.dtype, i);
    return {same, same ? 0.0 : 1.0, got};
  }
  const double e = expected_value(expected, rule.dtype, rule.wide, i);
  if (!isfinite(e)) {
    const bool same = isnan(e) ? isnan(got) && !rule.allclose : got == e;
    return {same, same ? 0.0 : infinity, got};
  }
  const double difference = fabs(got - e);
  if (difference == 0) return {true, 0.0, got};
  const double scale = rule.allclose ? rule.absolute + rule.relative * fabs(got)
                                     : fmax(fmax(fabs(e), rule.scale), 1e-300);
  const double limit = rule.allclose ? scale : rule.tolerance * scale;
  // The verdict is exact; the reported error has a float's precision where one can hold it.
  const double error = scale > 1e-30 && scale < 1e30 && difference < 1e30
                           ? static_cast<float>(difference) / static_cast<float>(scale)
                           : difference / scale;
  return {isfinite(difference) && difference <= limit, isnan(error) ? infinity : error, got};
}

extern "C" __global__ void compare(const void* out, const void* expected, RuleSpec rule,
                                   u64 poison_key, u64 first_byte, u64 count, Comparison* result) {
  double worst = 0;
  u64 bad = 0, nan = 0, unwritten = 0, first = 0, last = 0;
  const int bytes = element_bytes(rule.dtype);
  for (u64 i = first_index(); i < count; i += stride()) {
    const Judged judged = judge_element(out, expected, rule, i);
    worst = fmax(worst, judged.error);
    if (judged.ok) continue;
    ++bad;
    if (rule.floating && isnan(judged.got)) ++nan;
    // The poison under this element, as laid over the whole mapping in 32-bit words.
    const u64 at = first_byte + i * bytes;
    const u64 word = poison_word(poison_key, at / 4);
    const u64 under = bytes == 8 ? word | (u64)poison_word(poison_key, at / 4 + 1) << 32
                                 : (word >> 8 * (at % 4)) & ((1ull << 8 * bytes) - 1);
    if (load_bits(out, rule.dtype, i) == under) ++unwritten;
    first = max(first, ~i);
    last = max(last, i);
  }
  if (worst > 0) atomicMax(&result->worst, static_cast<u64>(__double_as_longlong(worst)));
  if (bad == 0) return;
  atomicAdd(&result->bad, bad);
  atomicAdd(&result->not_a_number, nan);
  atomicAdd(&result->unwritten, unwritten);
  atomicMax(&result->first_complement, first);
  atomicMax(&result->last, last);
}

// One round of core/task/mismatch.h's admit; zeroed before.
struct Admission {
  u64 largest, worst;  // bits of non-negative doubles
  u64 jumps;
};

extern "C" __global__ void admit(const void* out, const void* expected, RuleSpec rule, double jump,
                                 double rms, double mildly, u64 count, Admission* result) {
  double largest = 0, worst = 0;
  u64 jumps = 0;
  for (u64 i = first_index(); i < count; i += stride()) {
    const double e = expected_value(expected, rule.dtype, rule.wide, i);
    const double size = fabs(e);
    const double d = fabs(as_double(load_bits(out, rule.dtype, i), rule.dtype) - e);
    if (!isfinite(d) || d == 0) continue;
    if (d > jump * fmax(size, rms)) {
      ++jumps;
    } else if (size <= rule.scale || d > mildly * rule.tolerance * size) {
      largest = fmax(largest, d);
    } else {
      worst = fmax(worst, d / size);
    }
  }
  if (largest > 0) atomicMax(&result->largest, static_cast<u64>(__double_as_longlong(largest)));
  if (worst > 0) atomicMax(&result->worst, static_cast<u64>(__double_as_longlong(worst)));
  if (jumps > 0) atomicAdd(&result->jumps, jumps);
}

// After a failed comparison: one byte per element of a window, 1 where it is wrong.
extern "C" __global__ void mark_bad(const void* out, const void* expected, RuleSpec rule, u64 first,
                                    u64 count, unsigned char* marks, double* got_out,
                                    double* expected_out) {
  for (u64 i = first_index(); i < count; i += stride()) {
    const Judged judged = judge_element(out, expected, rule, first + i);
    marks[i] = judged.ok ? 0 : 1;
    got_out[i] = judged.got;
    expected_out[i] = expected_value(expected, rule.dtype, rule.wide, first + i);
  }
}

// Scales each value by 1 +- 1/64, so that sets differ in their parameters too.
extern "C" __global__ void vary(void* data, int dtype, u64 key, u64 count) {
  for (u64 i = first_index(); i < count; i += stride()) {
    const float u = static_cast<float>(kp::mix64(key + i) >> 40) * 5.9604644775390625e-8f;
    const float value =
        static_cast<float>(as_double(load_bits(data, dtype, i), dtype)) * (1 + (u - 0.5f) / 32);
    if (dtype <= 2) store_bits(data, dtype, i, kp::value_bits(dtype, value));
  }
}

extern "C" __global__ void lean(unsigned* data, u64 key, u64 count) {
  for (u64 i = first_index(); i < count; i += stride()) data[i] = kp::lean_bits(data[i], key, i);
}

// What a tensor's values are like (core/task/shapes.h, Surveyed); zeroed before.
struct Survey {
  u64 low_complement, high;  // as in Summary
  u64 descents, fractions;
};

extern "C" __global__ void survey(const void* data, int dtype, u64 count, Survey* out) {
  u64 low = 0, high = 0, descents = 0, fractions = 0;
  for (u64 i = first_index(); i < count; i += stride()) {
    const double v = as_double(load_bits(data, dtype, i), dtype);
    if (i > 0 && !(v >= as_double(load_bits(data, dtype, i - 1), dtype))) ++descents;
    if (!isfinite(v)) continue;
    if (v != trunc(v)) ++fractions;
    low = max(low, ~ordered(v));
    high = max(high, ordered(v));
  }
  if (high > 0) atomicMax(&out->high, high);
  if (low > 0) atomicMax(&out->low_complement, low);
  if (descents > 0) atomicAdd(&out->descents, descents);
  if (fractions > 0) atomicAdd(&out->fractions, fractions);
}

extern "C" __global__ void reshape(void* data, kp::ShapeSpec spec, u64 key, u64 count) {
  for (u64 i = first_index(); i < count; i += stride()) {
    store_bits(data, spec.dtype, i,
               kp::reshaped_bits(spec, key, i, load_bits(data, spec.dtype, i)));
  }
}

// An expected result, in doubles, into the output of its type.
extern "C" __global__ void narrow(const double* expected, void* out, int dtype, u64 count) {
  for (u64 i = first_index(); i < count; i += stride()) {
    store_bits(out, dtype, i, kp::value_bits(dtype, static_cast<float>(expected[i])));
  }
}

// Of the values that are rounded to an element, the nearest to `wanted` (core/task/deviation.h).
__device__ inline double before_rounding(u64 bits, int dtype, double wanted) {
  if (dtype != 1 && dtype != 2) return as_double(bits, dtype);
  const unsigned size = static_cast<unsigned>(bits) & 0x7fffu;
  const unsigned infinity = dtype == 1 ? 0x7c00u : 0x7f80u;
  if (size >= infinity || !isfinite(wanted)) return as_double(bits, dtype);
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  const double value = as_double(size, dtype);
  const double above = size + 1 < infinity ? as_double(size + 1, dtype)
                       : dtype == 1        ? 65536
                                           : value;
  const double below = size > 0 ? as_double(size - 1, dtype) : -above;
  return sign * fmin(fmax(sign * wanted, (value + below) / 2), (value + above) / 2);
}

// core/task/deviation.h's; zeroed before.
struct Deviation {
  double errors, sizes, products, relative;  // sums of squares; of errors times values
  u64 changed, lost, count;
  u64 worst, relative_worst;  // bits of non-negative doubles
};

__device__ inline void add_lanes(double value, double* to) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(to, value);
}

extern "C" __global__ void deviate(const void* out, const void* expected, int dtype, double rms,
                                   double scale, double changes, double faint, double loses,
                                   u64 count, Deviation* result) {
  double errors = 0, sizes = 0, products = 0, relative = 0, worst = 0, relative_worst = 0;
  u64 changed = 0, lost = 0, finite = 0;
  for (u64 i = first_index(); i < count; i += stride()) {
    const double e = expected_value(expected, dtype, 1, i);
    const double error = before_rounding(load_bits(out, dtype, i), dtype, e) - e;
    const double d = fabs(error);
    if (!isfinite(d)) continue;
    ++finite;
    errors += d * d;
    sizes += e * e;
    products += error * e;
    if (!(d > 0)) continue;
    if (d > changes * fabs(e)) ++changed;
    if (d > loses * fabs(e) && fabs(e) >= faint * rms) ++lost;
    worst = fmax(worst, d / fmax(fabs(e), rms));
    const double own = d / fmax(fabs(e), scale);
    relative += own * own;
    relative_worst = fmax(relative_worst, own);
  }
  add_lanes(errors, &result->errors);
  add_lanes(sizes, &result->sizes);
  add_lanes(products, &result->products);
  add_lanes(relative, &result->relative);
  if (changed > 0) atomicAdd(&result->changed, changed);
  if (lost > 0) atomicAdd(&result->lost, lost);
  if (finite > 0) atomicAdd(&result->count, finite);
  if (worst > 0) atomicMax(&result->worst, static_cast<u64>(__double_as_longlong(worst)));
  if (relative_worst > 0) {
    atomicMax(&result->relative_worst, static_cast<u64>(__double_as_longlong(relative_worst)));
  }
}

// core/task/deviation.h's MeanAxis.
struct MeanAxis {
  u64 outer, length, inner;
  int across;
};

// Sums of errors, less `common` times the values, over each group in `parts`; their squares are added
// to `squares` or, if there are several parts, the sums to `sums`, which was zeroed. A warp's lanes
// have a group each (`apart`), or share one.
extern "C" __global__ void mean_errors(const void* out, const void* expected, int dtype,
                                       double common, MeanAxis axis, u64 parts, int apart,
                                       double* sums, double* squares) {
  const u64 lanes = apart || blockDim.x < 32 ? 1 : 32, lane = threadIdx.x % lanes;
  const u64 groups = axis.across ? axis.length : axis.outer * axis.inner;
  const u64 averaged = axis.across ? axis.outer * axis.inner : axis.length;
  double all = 0;
  for (u64 item = first_index() / lanes; item < groups * parts; item += stride() / lanes) {
    const u64 group = item % groups, part = item / groups;
    const u64 first = axis.across
                          ? group * axis.inner
                          : group / axis.inner * axis.length * axis.inner + group % axis.inner;
    const u64 end = averaged * (part + 1) / parts;
    double sum = 0;
    for (u64 k = averaged * part / parts + lane; k < end; k += lanes) {
      const u64 i = first + (axis.across ? k / axis.inner * axis.length * axis.inner + k % axis.inner
                                         : k * axis.inner);
      const double e = expected_value(expected, dtype, 1, i);
      const double error = as_double(load_bits(out, dtype, i), dtype) - e - common * e;
      if (isfinite(error)) sum += error;
    }
    if (!apart) {
      for (int to = 16; to > 0; to /= 2) sum += __shfl_down_sync(~0u, sum, to);
    }
    if (lane != 0) continue;
    if (parts > 1) {
      atomicAdd(sums + group, sum);
    } else {
      all += sum * sum;
    }
  }
  add_lanes(all, squares);
}

extern "C" __global__ void add_squares(const double* values, u64 count, double* squares) {
  double all = 0;
  for (u64 i = first_index(); i < count; i += stride()) all += values[i] * values[i];
  add_lanes(all, squares);
}

// Do these bytes of an input matter to the result? Mode 0: makes floating values large, with
// alternating sign; mode 1: copies bytes of another place (other types: values must stay valid).
extern "C" __global__ void disturb(void* data, int dtype, int mode, float large, u64 first,
                                   u64 other, u64 count) {
  for (u64 i = first_index(); i < count; i += stride()) {
    if (mode == 1) {
      store_bits(data, dtype, first + i, load_bits(data, dtype, other + i));
      continue;
    }
    const float value = (i & 1) != 0 ? -large : large;
    if (dtype <= 2) store_bits(data, dtype, first + i, kp::value_bits(dtype, value));
  }
}
