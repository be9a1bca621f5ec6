// SPDX-License-Identifier: Apache-2.0
// The code of a CPU candidate as regions of equal execution count: the functions that `launch`
// reaches, their loops, and estimated counts.
// Any bytes are safe, and the work is bounded.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "profile/code/asm_operands.h"
#include "profile/code/asm_values.h"
#include "profile/code/loops.h"
#include "profile/code/objdump.h"

namespace kernelpro {

// A call to a math function counts as this many arithmetic instructions.
inline constexpr int kCallWork = 8;

struct AsmSite {
  std::size_t function = 0;
  int at = 0;  // instruction index
};

// Code that runs equally often: the part of a loop or function outside its inner loops.
struct AsmRegion {
  std::size_t function = 0;
  int loop = -1;  // in its function; -1: in no loop
  std::vector<int> own;
  int packed = 0, scalar = 0, bits = 0;  // calls to math functions included
  int math = 0;                          // those calls alone
  int integer = 0;                       // packed integer arithmetic
  bool stores = false, stack = false;
  std::set<std::string_view> operations;
  Induction induction;
  double weight = 0;  // estimated number of executed instructions
  bool rest = false;  // a remainder, or another version, of packed code
  bool arithmetic() const { return packed + scalar > 0; }
  // The scalar part of its arithmetic, 0 to 1. REQUIRES: arithmetic().
  double scalar_part() const { return static_cast<double>(scalar) / (scalar + packed + integer); }
  bool is_packed() const { return packed > scalar; }
};

struct AsmRoutine {
  std::vector<Flow> flow;
  std::vector<Loop> loops;
  std::vector<int> owner;        // by instruction: its innermost loop, or -1
  std::vector<Induction> steps;  // by loop
  std::vector<double> trips;     // by loop
  std::optional<AsmValues> values;
  std::vector<AsmSite> callers;
  std::set<std::string_view> packed;  // arithmetic done in packed form anywhere
  double runs = 0;                    // estimated; 0: not reached
};

class AsmProgram {
 public:
  // `functions` must outlive this object.
  explicit AsmProgram(const std::vector<AsmFunction>& functions);
  AsmProgram(const AsmProgram&) = delete;
  AsmProgram& operator=(const AsmProgram&) = delete;

  const std::vector<AsmFunction>& functions() const { return functions_; }
  const AsmRoutine& routine(std::size_t function) const { return routines_[function]; }
  // Regions of the reached functions, in function order.
  std::vector<AsmRegion>& regions() { return regions_; }
  const std::vector<AsmRegion>& regions() const { return regions_; }
  // The data-flow work limit was reached: unknown values may merely be unexplored.
  bool exhausted() const { return work_ <= 0; }
  // Null when the region is in no loop.
  const Loop* loop_of(const AsmRegion& region) const;

 private:
  void analyse(std::size_t f);
  double trips(std::size_t f, const std::vector<int>& own, const Induction& induction,
               double range) const;
  double runs(std::size_t f, int loop) const;
  void walk_calls();
  std::optional<std::size_t> function_at(const AsmReference& to) const;
  void add_regions(std::size_t f);

  const std::vector<AsmFunction>& functions_;
  std::vector<AsmRoutine> routines_;
  std::vector<AsmRegion> regions_;
  std::map<unsigned long long, std::size_t> by_address_;
  std::map<std::string_view, std::size_t> by_name_;
  long work_;  // remaining data-flow steps
};

}  // namespace kernelpro
