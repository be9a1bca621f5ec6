// SPDX-License-Identifier: Apache-2.0
// Backward slices over a whole function of machine code: which earlier instructions may have
// written what an instruction reads, or set the scoreboards that it waits for. Pure; the work of
// one search is bounded.
#pragma once

#include <bitset>
#include <functional>
#include <vector>

#include "profile/places/control_flow.h"
#include "profile/sass/operands.h"

namespace kernelpro {

inline constexpr int kScoreboardItems = 6;

struct Reached {
  int instruction = 0;
  int distance = 0;          // instructions issued from it to the use, on the shortest path
  int cycles = 0;            // that their stall counts take
  bool by_register = false;  // it writes what the use reads
  bool by_board = false;     // it sets a scoreboard that the use waits for
};

class Slicer {
 public:
  Slicer(const SassFunction& function, const ControlFlow& control);

  // The producers of what the instruction at `use` reads and waits for, the nearest first.
  std::vector<Reached> producers(int use) const;
  // Instructions before `use`, the nearest first, along each path back to one for which `stops`
  // holds. That one is included.
  std::vector<Reached> before(int use, const std::function<bool(int)>& stops) const;

 private:
  static constexpr int kItems = kRegisterSlots + kScoreboardItems;
  using Items = std::bitset<kItems>;
  // Takes from `wanted` what the instruction settles; tells whether it is among the producers.
  bool settle(int instruction, Items* wanted, Reached* reached) const;

  template <class Visit>
  void walk(int use, const Items& wanted, Visit visit) const;

  const SassFunction& f_;
  const ControlFlow& control_;
  std::vector<Access> access_;
};

}  // namespace kernelpro
