// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/lane_values.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace kernelpro {

namespace {

constexpr std::size_t kMostPatterns = 20'000;
constexpr int kExact = 31;       // alignment of a common part that is 0
constexpr int kWarpAligned = 5;  // a multiple of 32
constexpr long long kLargest = 1LL << 30;

int alignment(long long number) {
  return number == 0 ? kExact
                     : std::min(kExact, std::countr_zero(static_cast<std::uint64_t>(number)));
}

Lanes ramp() {
  Lanes lanes;
  for (int i = 0; i < kLanes; ++i) lanes[static_cast<std::size_t>(i)] = i;
  return lanes;
}

}  // namespace

LaneTable::LaneTable() {
  lanes_.push_back(Lanes{});
  numbers_[lanes_[0]] = 0;
}

LaneValue LaneTable::literal(long long number) {
  return {true, true, 0, 0, static_cast<std::uint8_t>(alignment(number)), number};
}

int LaneTable::intern(Lanes lanes, int* first) {
  *first = lanes[0];
  for (int& lane : lanes) lane -= *first;
  const auto found = numbers_.find(lanes);
  if (found != numbers_.end()) return found->second;
  if (lanes_.size() >= kMostPatterns) return -1;
  const int number = static_cast<int>(lanes_.size());
  lanes_.push_back(lanes);
  numbers_[lanes] = number;
  return number;
}

LaneValue LaneTable::with_pattern(const LaneValue& like, const Lanes& lanes, int aligned) {
  for (const int lane : lanes) {
    if (std::llabs(lane) >= kLargest) return unknown();
  }
  int first = 0;
  const int number = intern(lanes, &first);
  if (number < 0) return unknown();
  LaneValue value = like;
  value.pattern = static_cast<std::uint16_t>(number);
  value.constant = false;
  value.number = 0;
  value.aligned =
      static_cast<std::uint8_t>(std::clamp(std::min(aligned, alignment(first)), 0, kExact));
  return value;
}

LaneValue LaneTable::thread() { return with_pattern({}, ramp(), kWarpAligned); }

int LaneTable::combine(int labels, int others) {
  if (labels == 0) return others;
  if (others == 0 || labels == others) return labels;
  std::map<std::pair<int, int>, int> seen;
  Lanes combined;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::pair<int, int> both{lanes(labels)[i], lanes(others)[i]};
    combined[i] = seen.emplace(both, static_cast<int>(seen.size())).first->second;
  }
  int first = 0;
  return intern(combined, &first);
}

LaneValue LaneTable::add(const LaneValue& a, const LaneValue& b) {
  if (!a.known || !b.known) return unknown();
  if (a.constant && b.constant && std::llabs(a.number) < kLargest &&
      std::llabs(b.number) < kLargest) {
    return literal(a.number + b.number);
  }
  const int labels = combine(a.labels, b.labels);
  if (labels < 0) return unknown();
  LaneValue value;
  value.labels = static_cast<std::uint16_t>(labels);
  const int aligned = std::min(a.aligned, b.aligned);
  if (b.pattern == 0 || a.pattern == 0) {
    value.pattern = b.pattern == 0 ? a.pattern : b.pattern;
    value.aligned = static_cast<std::uint8_t>(aligned);
    return value;
  }
  Lanes sum;
  for (std::size_t i = 0; i < kLanes; ++i) sum[i] = lanes(a.pattern)[i] + lanes(b.pattern)[i];
  return with_pattern(value, sum, aligned);
}

LaneValue LaneTable::scale(const LaneValue& a, long long factor) {
  if (!a.known) return unknown();
  if (factor == 0) return literal(0);
  if (a.constant) {
    const bool small = std::llabs(a.number) < kLargest && std::llabs(factor) < kLargest;
    return small && std::llabs(a.number * factor) < kLargest ? literal(a.number * factor)
                                                             : uniform();
  }
  const int aligned = a.aligned + alignment(factor);
  if (a.pattern == 0) {
    LaneValue value = a;
    value.aligned = static_cast<std::uint8_t>(std::min(aligned, kExact));
    return value;
  }
  Lanes scaled;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const long long lane = lanes(a.pattern)[i] * std::clamp(factor, -kLargest, kLargest);
    if (std::llabs(lane) >= kLargest) return unknown();
    scaled[i] = static_cast<int>(lane);
  }
  return with_pattern(a, scaled, aligned);
}

LaneValue LaneTable::multiply(const LaneValue& a, const LaneValue& b) {
  if (b.constant) return scale(a, b.number);
  if (a.constant) return scale(b, a.number);
  if (!a.known || !b.known || (!a.uniform() && !b.uniform())) return unknown();
  LaneValue value;
  // Two run-time values: usually the block index times the block size, i.e. whole warps.
  if (a.uniform() && b.uniform()) {
    value.aligned = kWarpAligned;
    return value;
  }
  const LaneValue& lanes = a.uniform() ? b : a;
  const int labels = combine(lanes.pattern, lanes.labels);
  if (labels < 0) return unknown();
  value.labels = static_cast<std::uint16_t>(labels);
  return value;
}

LaneValue LaneTable::shift_right(const LaneValue& a, const LaneValue& by) {
  if (!a.known || !by.known) return unknown();
  if (a.uniform() && by.uniform()) return uniform();
  if (!by.constant || by.number < 0 || by.number > 31 || a.labels != 0) return unknown();
  const int bits = static_cast<int>(by.number);
  const Lanes& pattern = lanes(a.pattern);
  if (a.aligned < bits) {
    // The warp index, or the number of warps left to do: lanes of a warp agree except at an edge.
    const bool lane = std::abs(pattern[1]) == 1 && std::abs(pattern[31]) == 31;
    return lane && bits >= kWarpAligned ? uniform() : unknown();
  }
  Lanes shifted;
  for (std::size_t i = 0; i < kLanes; ++i) shifted[i] = pattern[i] >> bits;
  return with_pattern({}, shifted, a.aligned == kExact ? kExact : a.aligned - bits);
}

LaneValue LaneTable::bit_and(const LaneValue& a, const LaneValue& mask) {
  if (!a.known || !mask.known) return unknown();
  if (a.uniform() && mask.uniform()) return uniform();
  if (!mask.constant || a.labels != 0) return unknown();
  const auto low = [](long long m) { return m >= 0 && ((m + 1) & m) == 0; };
  // Middle bits: mask from bit 0, then remove the lowest ones.
  const long long below = (mask.number & -mask.number) - 1;
  if (mask.number > 0 && below > 0 && low(mask.number | below)) {
    return bit_and(bit_and(a, literal(mask.number | below)), literal(~below));
  }
  const Lanes& pattern = lanes(a.pattern);
  const bool keeps_low = low(mask.number);
  const bool keeps_high = mask.number < 0 && low(~mask.number);
  if (!keeps_low && !keeps_high) return unknown();
  const int bits =
      std::countr_zero(static_cast<std::uint64_t>(keeps_low ? mask.number + 1 : mask.number));
  if (a.aligned < bits) {
    // Keeps all lane bits and more: the removed part is common to all lanes except at an edge.
    return keeps_low && bits >= kWarpAligned ? a : unknown();
  }
  Lanes cut;
  for (std::size_t i = 0; i < kLanes; ++i) cut[i] = pattern[i] & static_cast<int>(mask.number);
  return with_pattern({}, cut, keeps_low ? kExact : a.aligned);
}

bool LaneTable::disjoint_from_common(const LaneValue& a, const LaneValue& b) const {
  if (a.labels != 0 || b.labels != 0) return false;
  int largest = 0;
  for (const LaneValue* value : {&a, &b}) {
    for (const int lane : lanes(value->pattern)) {
      if (lane < 0) return false;
      largest = std::max(largest, lane);
    }
  }
  const int bits = std::bit_width(static_cast<unsigned>(largest));
  return a.aligned >= bits && b.aligned >= bits;
}

LaneValue LaneTable::bit_or(const LaneValue& a, const LaneValue& b) {
  if (!a.known || !b.known) return unknown();
  // Usually a sum of values without common bits.
  if (a.uniform() || b.uniform()) return add(a, b);
  if (!disjoint_from_common(a, b)) return unknown();
  Lanes both;
  for (std::size_t i = 0; i < kLanes; ++i) both[i] = lanes(a.pattern)[i] | lanes(b.pattern)[i];
  return with_pattern({}, both, std::min(a.aligned, b.aligned));
}

LaneValue LaneTable::bit_xor(const LaneValue& a, const LaneValue& b) {
  if (!a.known || !b.known) return unknown();
  if (a.uniform() && b.uniform()) return uniform();
  if (!disjoint_from_common(a, b)) return unknown();
  Lanes both;
  for (std::size_t i = 0; i < kLanes; ++i) both[i] = lanes(a.pattern)[i] ^ lanes(b.pattern)[i];
  return with_pattern({}, both, std::min(a.aligned, b.aligned));
}

LaneValue LaneTable::meet(const LaneValue& a, const LaneValue& b) const {
  if (a == b) return a;
  if (!a.known || !b.known || a.pattern != b.pattern || a.labels != b.labels) return unknown();
  LaneValue value = a;
  value.constant = false;
  value.number = 0;
  value.aligned = std::min(a.aligned, b.aligned);
  return value;
}

}  // namespace kernelpro
