// SPDX-License-Identifier: Apache-2.0
// Where the values in general registers and stack slots of a CPU function come from: enough of data
// flow to see by how much a loop steps, how often it runs, and whether it goes on where another one
// ended.
//
// Reaching definitions by a walk against the control flow, instruction by instruction. The work of
// one object is bounded; where the bound is reached the answer is "not known".
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "profile/code/asm_operands.h"
#include "profile/code/loops.h"

namespace kernelpro {

// What the initial value of a register was computed from.
struct ValueOrigin {
  std::set<int> definitions;  // instructions on the way
  std::set<int> parameters;   // registers that hold the function's parameters
  bool stack = false;         // an address in the stack frame
  long long multiple = 1;     // a value was rounded to a multiple of this, or is the rest of one
};

// How a loop moves through memory.
struct Induction {
  std::map<int, long long> steps;  // register: bytes or elements per iteration
  std::set<int> bases;             // registers in its addresses that do not change
  long long advance = 0;           // bytes per iteration of its slowest moving access; 0: not known
  std::optional<double> trips;     // where both ends are known
};

class AsmValues {
 public:
  // All must outlive it. `owner`: by instruction, its innermost loop or -1. `work`: steps that are
  // left, shared by the functions of an object.
  AsmValues(const AsmFunction& function, const std::vector<Flow>& flow,
            const std::vector<Loop>& loops, const std::vector<int>& owner, long* work);

  // The origin of `place` before instruction `at`, in the first iteration of the loops that the
  // instruction is in: at a loop's header, the value that the loop begins with.
  ValueOrigin origin(int at, int place) const;

  // REQUIRES: `own` are the instructions of the loop that are in no inner loop.
  Induction induction(const Loop& loop, const std::vector<int>& own) const;

  // Instructions that may run after `from` without passing through a barrier.
  std::vector<bool> after(int from, const std::vector<int>& barriers) const;

  // Every access of these instructions is to the stack frame or to a constant of the code.
  bool only_stack(const std::vector<int>& own) const;

  const std::vector<AsmOperand>& operands(int i) const { return operands_[at(i)]; }

 private:
  struct Known {  // a value as a root and an offset from it
    std::set<int> root;
    int place = -1;
    long long offset = 0;
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool writes(int i, int place) const;
  int slot(const AsmOperand& operand) const;
  bool jumps_back(int from, int to, int inside) const;
  std::set<int> reaching(int i, int place, bool* entry) const;
  Known known(int i, int place, int depth) const;
  std::vector<int> sources(int i, int place, ValueOrigin* origin) const;
  std::optional<double> trips(const Loop& loop, const std::vector<int>& own,
                              const std::map<int, long long>& steps) const;

  const AsmFunction& function_;
  const std::vector<Flow>& flow_;
  const std::vector<Loop>& loops_;
  const std::vector<int>& owner_;
  long* work_;
  bool frame_pointer_ = false;
  std::vector<std::vector<AsmOperand>> operands_;
  std::vector<std::vector<int>> previous_;
};

}  // namespace kernelpro
