// SPDX-License-Identifier: Apache-2.0
// Def-use edges between the instructions of a loop body, in code order: branches within the body
// are treated as straight-line code. A value that an inner loop writes has no writer here.
#pragma once

#include <vector>

#include "profile/sass/operands.h"
#include "profile/sass/program.h"

namespace kernelpro {

// Places are indices into `body`, not into the function's code.
struct Dependence {
  int from = 0;          // the writer
  bool carried = false;  // written in the previous iteration
  Use use = Use::kData;
};

class Dataflow {
 public:
  // `loops`: whether the first instruction follows the last.
  Dataflow(const SassFunction& function, const std::vector<int>& body, bool loops);

  int size() const { return static_cast<int>(body_.size()); }
  const SassInstruction& at(int place) const {
    return function_.code[static_cast<std::size_t>(body_[static_cast<std::size_t>(place)])];
  }
  const Access& access(int place) const { return access_[static_cast<std::size_t>(place)]; }
  const std::vector<Dependence>& reads(int place) const {
    return reads_[static_cast<std::size_t>(place)];
  }
  // Places that read the result of `place`, and how; loop-carried reads included.
  struct Reader {
    int place = 0;
    Use use = Use::kData;
  };
  const std::vector<Reader>& readers(int place) const {
    return readers_[static_cast<std::size_t>(place)];
  }
  // Whether anything in the body writes the register.
  bool written(int reg) const { return last_[static_cast<std::size_t>(reg)] >= 0; }
  // Indices into the function's code, ascending.
  const std::vector<int>& body() const { return body_; }
  bool loops() const { return loops_; }
  const SassFunction& function() const { return function_; }

 private:
  const SassFunction& function_;
  const std::vector<int>& body_;
  bool loops_;
  std::vector<Access> access_;
  std::vector<std::vector<Dependence>> reads_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<int> last_;  // last writer of each register
};

}  // namespace kernelpro
