// SPDX-License-Identifier: Apache-2.0
// A page of memory by which processes give each other signs, within a microsecond where a message
// takes tens. A turn has a number; whoever has reached a point of it writes the number there. The
// other side may be hostile: it can write anything at any time, but neither shrink the page nor
// make a wait longer than its limit. One thread per process.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/files.h"

namespace kernelpro {

// In the order in which the page has them, 64 bytes apart (python/kernelpro_torch/gate.py).
enum class Sign {
  kReady,   // the worker waits for the order
  kOrder,   // begin
  kAnswer,  // the worker is done
  kOver,    // nobody will answer in this turn any more
};

class Gate {
 public:
  static Result<Gate> make();
  // The page of another process. Does not keep the descriptor.
  static Result<Gate> map(int fd);
  Gate() = default;
  Gate(Gate&& other) noexcept;
  Gate& operator=(Gate&& other) noexcept;
  ~Gate();

  bool valid() const { return page_ != nullptr; }
  int fd() const { return fd_.get(); }  // of a page made here

  void give(Sign sign, std::uint64_t turn);
  // Waits for a sign, at first without sleeping. False: after `timeout_s`, or when the turn is over
  // without it.
  bool await(Sign sign, std::uint64_t turn, double timeout_s) const;

 private:
  std::uint64_t read(Sign sign) const;
  Fd fd_;
  void* page_ = nullptr;
};

}  // namespace kernelpro
