// SPDX-License-Identifier: Apache-2.0
// What probes do to values after they were drawn, shared by host code (core/task/shapes.cc) and the
// judge's kernels (compiled by NVRTC). Element i becomes a function of itself, its place and a key,
// in place and in any order. Where it can, a shape depends on the value and not on the place: equal
// elements stay equal, so that a symmetric or repeating tensor stays one. Zeros, infinities and NaN
// stay, since they may be structure (a triangle, a mask); values stay within the drawn range, since
// others may be meaningless to the task (probabilities, logarithms).
//
// Includes nothing: the includer must include draw.h before.
#pragma once

namespace kp {

// Streams under a key (draw.h) that shapes take one word of.
constexpr unsigned long long kShapeStream = 3ull << 32;
constexpr unsigned long long kNudgeStream = 4ull << 32;

enum Shape {
  kUnchanged,
  kPowerOfTwo,  // all times `factor`
  kGrow,        // likewise: a factor of at least 8 that makes the largest at least 1
  kHeavy,       // most get small, one in 64 keeps its size: heavy tails
  kRepeated,    // one in four becomes one of at most 128 values of either sign
  kRows,        // rows and channels of different size, rising rows
  kTop,         // rows whose elements are all near the maximum, or some side by side or with a
                // period; constant rows
  kSparse,      // one in `period` keeps its size, times `factor`; the others are zero or negligible
  kEnds,        // integers: half of them at either end of the range
  kEqual,       // integers: all at one end
  kRuns,    // integers: in three of four runs, all equal: to the last value in one, to any in two
  kRamp,    // integers: sorted, or all different as long as the range lasts
  kJitter,  // a constant tensor: its elements move by an eighth to a quarter
  kFew,     // few elements: one of each `period` grows, three places of a constant one move
  kFractions,   // one of each `period` of whole numbers gets digits after the point
  kOutlier,     // one element of each row (of one in `period`) gets large or changes its sign
  kBackground,  // one in `period` keeps its size; all others have one value: zero, or one `factor`
                // times as large as the largest, by `sign`
  kSlabs,       // half of the places of an axis keep their size, times `factor`; the others get
                // smaller by 2^`depth`, or zero from 127 on
  kNudge,       // all times 1 +- `factor`
};

// kSlabs, in `range`: a few places of the other half keep theirs too, the same ones for either
// `sign`; all elements lose their sign.
constexpr unsigned long long kSharedSlabs = 1, kMagnitudes = 2;
constexpr unsigned kNegligibleDepth = 34;  // less than the last digit of what is added up

struct ShapeSpec {
  int shape;
  int dtype;        // as kernelpro::DType
  unsigned period;  // kSparse, kFew, kOutlier, kBackground, kFractions
  unsigned depth;   // kRows: sizes differ by up to this power of two; kSlabs; kFew: 1: chosen by
                    // value, so that a symmetric matrix stays one
  int sign;         // kPowerOfTwo, kFew, kOutlier: of what gets large; 0: as it comes; kBackground;
                    // kSlabs: which half, 1 or -1
  float factor;     // kPowerOfTwo, kSparse, kFew, kOutlier, kBackground, kNudge; kRepeated, kTop: a
                    // step, a power of two
  float low, high;  // range of the drawn values
  long long first;  // ... of integers: the smallest, and the largest minus it; kSlabs: the key
  unsigned long long range;            //
  unsigned long long row;              // elements of a row
  unsigned long long inner, channels;  // a channel is (i / inner) % channels
  unsigned long long count;            // elements of the tensor
};

KP_DRAW unsigned long long shape_word(unsigned long long key, unsigned long long i) {
  return mix64(key + 0x9e3779b97f4a7c15ull * (i + 1));
}

KP_DRAW unsigned long long shape_key(unsigned long long seed, unsigned tensor) {
  return shape_word(seed ^ 0x5eed5a9e5ull, tensor);
}

KP_DRAW float two_to(int power) { return bits_float(static_cast<unsigned>(127 + power) << 23); }

KP_DRAW float unit_float(unsigned long long word) {
  return static_cast<float>(word >> 40) * 5.9604644775390625e-8f;
}

KP_DRAW float magnitude(float value) { return value < 0 ? -value : value; }

KP_DRAW float signed_as(const ShapeSpec& spec, float value) {
  return spec.sign == 0 ? value : spec.sign > 0 ? magnitude(value) : -magnitude(value);
}

KP_DRAW float within(const ShapeSpec& spec, float value) {
  return value < spec.low ? spec.low : value > spec.high ? spec.high : value;
}

// The middle of the step that holds `value`. Sums of these are exact in fp32 for long, so that
// repeating the same few values does not add up the same rounding error each time.
KP_DRAW float stepped(const ShapeSpec& spec, float value, float step) {
  const float size = magnitude(value);
  const float middle = (static_cast<float>(static_cast<int>(size / step)) + 0.5f) * step;
  return within(spec, value < 0 ? -middle : middle);
}

// Whether a row's element is one of those near the maximum, where few are: every so many, or a run
// of them. `word`: of the row. Whoever keeps a few for each part of a row, however it takes the
// parts, meets rows whose largest elements are all in one.
KP_DRAW bool in_cluster(const ShapeSpec& spec, unsigned long long word, unsigned long long column) {
  unsigned powers = 1;
  while (powers < 20 && (spec.row >> (powers + 3)) != 0) ++powers;
  const unsigned long long step = (2ull << ((word >> 8) % powers)) * (1 + (word >> 16) % 3);
  const unsigned long long start = (word >> 24) % spec.row;
  if ((word & 4u) != 0) return column % step == start % step;
  return (column + spec.row - start) % spec.row < step;
}

KP_DRAW float largest_drawn(const ShapeSpec& spec) {
  return magnitude(spec.low) > magnitude(spec.high) ? magnitude(spec.low) : magnitude(spec.high);
}

// A place of each row, as unlike the rest as it may be.
KP_DRAW float outlying(const ShapeSpec& spec, unsigned long long key, unsigned long long i,
                       float value) {
  const unsigned long long w = shape_word(key, i / spec.row);
  if ((w >> 40) % spec.period != 0 || (w >> 8) % spec.row != i % spec.row) return value;
  const bool one_sign = spec.low >= 0 || spec.high <= 0;
  if (one_sign && spec.sign == 0 && (w & 1u) != 0) return -value;
  const float size = largest_drawn(spec) * spec.factor * two_to(-static_cast<int>((w >> 2) % 4));
  const float large = fmaf(-0.5f * size, unit_float(shape_word(~key, i)), size);
  if (spec.sign != 0) return signed_as(spec, large);
  return (one_sign ? value < 0 : (w & 2u) != 0) ? -large : large;
}

KP_DRAW float reshaped_row(const ShapeSpec& spec, unsigned long long key, unsigned long long i,
                           float value) {
  const unsigned long long row = i / spec.row;
  const unsigned long long w = shape_word(key, row);
  const float width = spec.high - spec.low;
  const unsigned kind = static_cast<unsigned>(w) & 3u;
  if (spec.shape == kTop) {
    if (kind == 0) return stepped(spec, fmaf(width, unit_float(w), spec.low), 4 * spec.factor);
    if (kind == 3 || (kind == 2 && !in_cluster(spec, w, i % spec.row))) return value;
    return within(spec, fmaf(-0.00390625f * width, unit_float(shape_word(~key, i)), spec.high));
  }
  if (kind == 2) {
    const float along = static_cast<float>(i % spec.row) + unit_float(shape_word(~key, i));
    return within(spec, fmaf(width, along / static_cast<float>(spec.row), spec.low));
  }
  if (kind == 3) return value;
  float size = two_to(-static_cast<int>((w >> 8) % spec.depth));
  if ((key & 1u) != 0 && spec.channels > 1) {
    const unsigned long long channel = (i / spec.inner) % spec.channels;
    size *= two_to(-static_cast<int>(shape_word(key ^ 0xc4a1ull, channel) % spec.depth));
  }
  return value * size;
}

// Whether element i of a constant tensor moves: all of them do, or three at random places.
KP_DRAW bool moves(const ShapeSpec& spec, unsigned long long key, unsigned long long i) {
  if (spec.shape == kJitter) return true;
  for (unsigned long long k = 0; k < 3; ++k) {
    if (shape_word(~key, k) % spec.count == i) return true;
  }
  return false;
}

// Whether element i is the one of its `period` elements: not one more or less by luck.
KP_DRAW bool one_of_period(const ShapeSpec& spec, unsigned long long key, unsigned long long i) {
  return shape_word(~key, i / spec.period) % spec.period == i % spec.period;
}

KP_DRAW float jittered(unsigned long long word, float value) {
  const float by = fmaf(0.125f, unit_float(word), 0.125f);
  const float change = (word & 1u) != 0 ? by : -by;
  return value == 0 ? change : fmaf(value, change, value);
}

// Small whole numbers have too few digits to show how products are rounded, and few values to
// choose from.
KP_DRAW bool small_whole(float value) {
  return value > -1048576.0f && value < 1048576.0f &&
         static_cast<float>(static_cast<int>(value)) == value;
}
KP_DRAW float with_digits(unsigned long long word, float value) {
  return small_whole(value) ? value + (unit_float(word) - 0.5f) : value;
}

// What does not matter has either sign: sums that are rounded in one direction would drift by an
// ulp with each term of one sign.
KP_DRAW float of_either_sign(unsigned long long word, float value) {
  return ((word >> 7) & 1u) != 0 ? -value : value;
}

// Depends on the place along the axis alone, and on a key that tensors have in common.
KP_DRAW float in_slab(const ShapeSpec& spec, unsigned long long i, unsigned long long word,
                      float value) {
  constexpr unsigned long long kShared = 4;
  const unsigned long long key = static_cast<unsigned long long>(spec.first);
  const unsigned long long place = (i / spec.inner) % spec.channels;
  bool keeps = ((shape_word(key, place) & 1u) != 0) == (spec.sign > 0);
  for (unsigned long long k = 0; k < kShared && (spec.range & kSharedSlabs) != 0; ++k) {
    keeps = keeps || shape_word(~key, k) % spec.channels == place;
  }
  const float size = ((spec.range & kMagnitudes) != 0 ? magnitude(value) : value) * spec.factor;
  if (keeps) return size;
  if (spec.depth >= 127) return 0.0f;
  const float less = size * two_to(-static_cast<int>(spec.depth));
  const bool negligible = (spec.range & kSharedSlabs) != 0 && spec.depth >= kNegligibleDepth;
  return negligible ? of_either_sign(word, less) : less;
}

KP_DRAW float reshaped_float(const ShapeSpec& spec, unsigned long long key, unsigned long long i,
                             float value) {
  const unsigned bits = float_bits(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  if (spec.shape == kJitter || (spec.shape == kFew && spec.low == spec.high)) {
    return moves(spec, key, i) ? jittered(shape_word(key, i), value) : value;
  }
  if ((bits & 0x7fffffffu) == 0) return value;
  const unsigned long long w = shape_word(key, bits);
  switch (spec.shape) {
    case kPowerOfTwo:
    case kGrow:
      return signed_as(spec, value * spec.factor);
    case kSlabs:
      return in_slab(spec, i, w, value);
    case kOutlier:
      return outlying(spec, key, i, value);
    case kHeavy: {
      int power = -6;
      for (unsigned long long rest = w; power < 0 && (rest & 1u) == 0; rest >>= 1) ++power;
      return value * two_to(power);
    }
    case kRepeated:
      return (w & 3u) == 0 ? stepped(spec, value, spec.factor) : value;
    case kRows:
    case kTop:
      return reshaped_row(spec, key, i, value);
    case kSparse: {
      const unsigned long long chosen = small_whole(value) ? shape_word(key, i) : w;
      if ((chosen >> 8) % spec.period == 0) return with_digits(chosen, value) * spec.factor;
      if ((key & 1u) == 0) return 0.0f;
      return of_either_sign(w, value * (spec.factor * 8.6736173798840355e-19f));  // 2^-60
    }
    case kBackground:
      if (((small_whole(value) ? shape_word(key, i) : w) >> 8) % spec.period == 0) return value;
      return static_cast<float>(spec.sign) * spec.factor * largest_drawn(spec);
    case kFew: {  // a negative factor: half of them change their sign instead
      const bool by_value = spec.depth != 0;
      if (by_value ? (w >> 8) % spec.period != 0 : !one_of_period(spec, key, i)) return value;
      if (spec.factor > 0) return signed_as(spec, value * spec.factor);
      const bool turns = ((by_value ? w : i / spec.period) & 1u) != 0;
      return turns ? -value : signed_as(spec, -value * spec.factor);
    }
    case kFractions:
      if (!one_of_period(spec, key, i)) return value;
      return within(spec, with_digits(w, value));
    case kNudge:
      return fmaf(value, (shape_word(key, i) & 1u) != 0 ? spec.factor : -spec.factor, value);
    default:
      return value;
  }
}

KP_DRAW long long reshaped_integer(const ShapeSpec& spec, unsigned long long key,
                                   unsigned long long i, long long value) {
  const long long last = spec.first + static_cast<long long>(spec.range);
  switch (spec.shape) {
    case kEnds: {
      const unsigned long long w = shape_word(key, i) & 3u;
      return w == 0 ? spec.first : w == 1 ? last : value;
    }
    case kEqual:
      return (key & 1u) != 0 ? spec.first : last;
    case kRuns: {  // long ones in the first half, some shorter length in the second
      unsigned powers = 1;
      while (powers < 30 && (spec.count >> (powers + 5)) != 0) ++powers;
      unsigned long long length = 4ull << ((key >> 8) % powers);
      if (2 * i < spec.count && spec.count / 32 > length) length = spec.count / 32;
      // Of four runs beside each other, one stays, one is the last value, two are any.
      const unsigned long long run = (i + (key >> 16) % length) / length;
      const unsigned long long turn = (run + shape_word(~key, run / 4)) & 3u;
      if (turn == 0) return value;
      if (turn == 1) return last;
      return spec.first + static_cast<long long>((shape_word(key, run) >> 8) % (spec.range + 1));
    }
    case kRamp: {
      if ((key & 1u) == 0) return spec.first + static_cast<long long>(i % (spec.range + 1));
      const double share = static_cast<double>(i) / static_cast<double>(spec.count);
      return spec.first + static_cast<long long>(share * static_cast<double>(spec.range));
    }
    case kJitter:
    case kFew: {  // one value: `first`
      if (!moves(spec, key, i)) return value;
      const unsigned long long w = shape_word(key, i);
      if (spec.dtype == 5) return spec.shape == kFew || (w & 7u) == 0 ? 1 - value : value;
      // Still an index into whatever it was one into.
      const unsigned long long half = static_cast<unsigned long long>(value) / 2;
      return value < 2 ? value : value - static_cast<long long>(w % (half + 1));
    }
    default:
      return value;
  }
}

// A value of a floating type, in its own bits.
KP_DRAW unsigned value_bits(int dtype, float value) {
  return dtype == 0 ? float_bits(value) : dtype == 1 ? to_half(value) : to_bfloat16(value);
}

// The new bits of element i, which holds `bits`, in the low bytes.
KP_DRAW unsigned long long reshaped_bits(const ShapeSpec& spec, unsigned long long key,
                                         unsigned long long i, unsigned long long bits) {
  const bool floating = spec.dtype <= 2;
  float value = 0;
  if (spec.dtype == 0) value = bits_float(static_cast<unsigned>(bits));
  if (spec.dtype == 1) value = from_half(static_cast<unsigned short>(bits));
  if (spec.dtype == 2) value = from_bfloat16(static_cast<unsigned short>(bits));
  if (!floating || spec.shape == kEnds || spec.shape == kEqual || spec.shape == kRamp ||
      spec.shape == kRuns) {
    const long long whole = floating          ? static_cast<long long>(value)
                            : spec.dtype == 3 ? static_cast<int>(static_cast<unsigned>(bits))
                                              : static_cast<long long>(bits);
    const long long result = reshaped_integer(spec, key, i, whole);
    if (spec.dtype == 3) return static_cast<unsigned>(result);
    if (spec.dtype == 4) return static_cast<unsigned long long>(result);
    if (spec.dtype == 5) return result != 0 ? 1u : 0u;
    value = static_cast<float>(result);
  } else {
    value = reshaped_float(spec, key, i, value);
  }
  return spec.dtype == 0   ? float_bits(value)
         : spec.dtype == 1 ? to_half(value)
                           : to_bfloat16(value);
}

}  // namespace kp
