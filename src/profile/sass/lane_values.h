// SPDX-License-Identifier: Apache-2.0
// What is known of a register across the lanes of a warp, and arithmetic on that.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace kernelpro {

inline constexpr int kLanes = 32;
using Lanes = std::array<int, kLanes>;

// value of a lane = pattern[lane] + factors[labels[lane]] + common, where nobody knows the factors
// (of lanes with different labels they differ) nor, unless `constant`, the common part.
// Patterns and labels are kept in a LaneTable, by number; number 0 is the same for all lanes.
struct LaneValue {
  bool known = true;
  bool constant = false;  // pattern and labels are 0, and the common part is `number`
  std::uint16_t pattern = 0;
  std::uint16_t labels = 0;
  std::uint8_t aligned = 0;  // the common part is a multiple of 2 to this
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
  // threadIdx.x: the lane, and a multiple of 32.
  LaneValue thread();

  LaneValue add(const LaneValue& a, const LaneValue& b);
  LaneValue scale(const LaneValue& a, long long factor);
  LaneValue multiply(const LaneValue& a, const LaneValue& b);
  LaneValue shift_right(const LaneValue& a, const LaneValue& by);
  LaneValue bit_and(const LaneValue& a, const LaneValue& mask);
  LaneValue bit_or(const LaneValue& a, const LaneValue& b);
  LaneValue bit_xor(const LaneValue& a, const LaneValue& b);
  // Where two paths meet.
  LaneValue meet(const LaneValue& a, const LaneValue& b) const;

 private:
  // The number of a pattern, its first lane made 0 (`*first` gets what it was), or -1: too many.
  int intern(Lanes lanes, int* first);
  // Labels that tell apart what either tells apart.
  int combine(int labels, int others);
  LaneValue with_pattern(const LaneValue& like, const Lanes& lanes, int aligned);
  // Whether both are numbers below a power of two that divides both common parts.
  bool disjoint_from_common(const LaneValue& a, const LaneValue& b) const;

  std::vector<Lanes> lanes_;
  std::map<Lanes, int> numbers_;
};

}  // namespace kernelpro
