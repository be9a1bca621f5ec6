// SPDX-License-Identifier: Apache-2.0
// Where the values in a CPU function's general registers and stack slots come from: enough data
// flow to find a loop's step, its trip count, and whether it continues where another loop ended.
//
// Reaching definitions, by walking the control flow backwards one instruction at a time. The work
// per object is bounded; beyond the bound the answer is "unknown".
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "profile/code/asm_operands.h"
#include "profile/code/loops.h"

namespace kernelpro {

// The inputs from which a register's initial value was computed.
struct ValueOrigin {
  std::set<int> definitions;  // instructions on the way
  std::set<int> parameters;   // registers that hold the function's parameters
  bool stack = false;         // an address in the stack frame
  long long multiple = 1;     // some value was rounded to a multiple of this, or is the remainder
};

// How a loop moves through memory.
struct Induction {
  std::map<int, long long> steps;  // register: bytes or elements per iteration
  std::set<int> bases;             // loop-invariant registers in its addresses
  long long advance = 0;           // bytes per iteration of its slowest-moving access; 0: unknown
  std::optional<double> trips;     // set when both bounds are known
};

class AsmValues {
 public:
  // All arguments must outlive this object. `owner`: by instruction, its innermost loop or -1.
  // `work`: remaining steps, shared by the functions of an object.
  AsmValues(const AsmFunction& function, const std::vector<Flow>& flow,
            const std::vector<Loop>& loops, const std::vector<int>& owner, long* work);

  // The origin of `place` before instruction `at`, in the first iteration of the enclosing loops:
  // at a loop header, the value on entry to the loop.
  ValueOrigin origin(int at, int place) const;

  // REQUIRES: `own` holds the loop's instructions outside inner loops.
  Induction induction(const Loop& loop, const std::vector<int>& own) const;

  // Instructions that may run after `from` without passing through a barrier.
  std::vector<bool> after(int from, const std::vector<int>& barriers) const;

  // Whether these instructions access only the stack frame and constants in the code.
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
