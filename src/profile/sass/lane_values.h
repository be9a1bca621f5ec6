// SPDX-License-Identifier: Apache-2.0
// The abstract value of a register across the lanes of a warp, and arithmetic on it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace kernelpro {

inline constexpr int kLanes = 32;
using Lanes = std::array<int, kLanes>;

// value of a lane = pattern[lane] + factors[labels[lane]] + common. The factors are unknown (and
// differ between labels); so is the common part unless `constant`.
// A LaneTable holds patterns and labels by number; in number 0 all lanes are equal.
struct LaneValue {
  bool known = true;
  bool constant = false;  // pattern and labels are 0, and the common part is `number`
  std::uint16_t pattern = 0;
  std::uint16_t labels = 0;
  std::uint8_t aligned = 0;  // the common part is a multiple of 2^aligned
  long long number = 0;
  bool operator==(const LaneValue&) const = default;
  bool uniform() const { return known && pattern == 0 && labels == 0; }
};

class LaneTable {
 public:
  LaneTable();
  const Lanes& lanes(int number) const { return lanes_[static_cast<std::size_t>(number)]; }

  static LaneValue unknown() { return {false, false, 0, 0, 0, 0}; }
  static LaneValue uniform() { return {}; }
  static LaneValue literal(long long number);
  // threadIdx.x: the lane plus a multiple of 32.
  LaneValue thread();

  LaneValue add(const LaneValue& a, const LaneValue& b);
  LaneValue scale(const LaneValue& a, long long factor);
  LaneValue multiply(const LaneValue& a, const LaneValue& b);
  LaneValue shift_right(const LaneValue& a, const LaneValue& by);
  LaneValue bit_and(const LaneValue& a, const LaneValue& mask);
  LaneValue bit_or(const LaneValue& a, const LaneValue& b);
  LaneValue bit_xor(const LaneValue& a, const LaneValue& b);
  // The join of two control-flow paths.
  LaneValue meet(const LaneValue& a, const LaneValue& b) const;

 private:
  // The number of a pattern, shifted so that its first lane is 0 (`*first` gets the old value);
  // -1 when there are too many.
  int intern(Lanes lanes, int* first);
  // Labels that distinguish every pair of lanes that either input distinguishes.
  int combine(int labels, int others);
  LaneValue with_pattern(const LaneValue& like, const Lanes& lanes, int aligned);
  // Whether both patterns stay below a power of two that divides both common parts.
  bool disjoint_from_common(const LaneValue& a, const LaneValue& b) const;

  std::vector<Lanes> lanes_;
  std::map<Lanes, int> numbers_;
};

}  // namespace kernelpro
