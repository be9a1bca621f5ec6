// SPDX-License-Identifier: Apache-2.0
#include "profile/places/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "profile/places/blame.h"
#include "profile/sass/opcodes.h"
#include "profile/sass/operands.h"

namespace kernelpro {

namespace {

constexpr double kLoopFactor = 16;  // as loops.cc weighs nesting
constexpr int kDeepest = 8;
constexpr int kTurns = 3;  // of a loop body; the last is counted
// Cycles, of the order that microbenchmarks of sm_80 to sm_90 show.
constexpr double kBarrierCycles = 40;
constexpr double kFenceCycles = 300;
constexpr double kCopyCycles = 600;
constexpr double kProductCycles = 128;
constexpr double kOperandsRead = 12;

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

double latency(const SassInstruction& i) {
  if (i.root == "LDGDEPBAR") return kCopyCycles;
  if (i.op == Op::kMbarrier && i.has("TRYWAIT")) return kCopyCycles;
  return typical_latency(i);
}

// One warp that issues a body in order.
class Warp {
 public:
  explicit Warp(const SassFunction& function) : f_(function), writer_(kRegisterSlots) {}

  template <class Record>
  void run(const std::vector<int>& body, Record record) {
    for (const int k : body) step(k, record);
  }

 private:
  struct Ready {
    double at = 0;
    Stall stall = Stall::kWait;
  };

  template <class Record>
  void step(int k, Record record) {
    const SassInstruction& i = f_.code[slot(k)];
    if (pause_ > 0) record(k, Stall::kWait, pause_);
    Ready ready = due(i);
    if (ready.at > now_) {
      record(k, ready.stall, ready.at - now_);
      now_ = ready.at;
    }
    record(k, Stall::kSelected, 1);
    const double stall = i.control.known ? std::max<int>(1, i.control.stall) : 1;
    pause_ = stall - 1;
    issue(i);
    now_ += stall;
  }

  // When the instruction may issue, and what it waits for until then.
  Ready due(const SassInstruction& i) const {
    Ready latest;
    const auto later = [&](const Ready& ready) {
      if (ready.at > latest.at) latest = ready;
    };
    if (i.control.known) {
      for (std::size_t b = 0; b < board_.size(); ++b) {
        if ((i.control.waits >> b & 1) != 0) later(board_[b]);
      }
    } else {
      for (const OperandUse& read : access_of(i).reads) {
        each(read.registers, [&](std::size_t r) { later(writer_[r]); });
      }
    }
    if (i.root == "BAR" && !i.has("ARV")) later({now_ + kBarrierCycles, Stall::kBarrier});
    if (i.op == Op::kClusterBarrier) later({now_ + kBarrierCycles, Stall::kBarrier});
    if (i.op == Op::kFence && i.root == "MEMBAR") later({now_ + kFenceCycles, Stall::kMembar});
    if (i.root == "DEPBAR") later({copied_, Stall::kLongScoreboard});
    if (i.root == "WARPGROUP" && i.has("DEPBAR")) later({product_, Stall::kGmma});
    return latest;
  }

  void issue(const SassInstruction& i) {
    const Ready ready{now_ + latency(i), !i.control.known && !is_variable_latency(i.op)
                                             ? Stall::kWait
                                         : answers_far(i) ? Stall::kLongScoreboard
                                                          : Stall::kShortScoreboard};
    const auto hold = [&](std::size_t b, const Ready& value) {
      if (b < board_.size() && value.at > board_[b].at) board_[b] = value;
    };
    if (i.control.known) {
      hold(i.control.written_by, ready);
      hold(i.control.read_by, {now_ + kOperandsRead, ready.stall});
    } else {
      for (const RegisterSpan& span : access_of(i).writes) {
        each(span, [&](std::size_t r) { writer_[r] = ready; });
      }
    }
    if (i.op == Op::kAsyncCopy) copied_ = now_ + kCopyCycles;
    if (i.op == Op::kWarpgroup) product_ = std::max(product_, now_) + kProductCycles;
  }

  template <class Visit>
  static void each(const RegisterSpan& span, Visit visit) {
    for (int r = span.first; r < std::min(span.first + span.count, kRegisterSlots); ++r) {
      visit(slot(r));
    }
  }

  const SassFunction& f_;
  double now_ = 0;
  double pause_ = 0;    // that the previous instruction asks for
  double copied_ = 0;   // when asynchronous copies are complete
  double product_ = 0;  // when warpgroup products are
  std::array<Ready, 6> board_{};
  std::vector<Ready> writer_;  // of each register, without control codes
};

}  // namespace

std::vector<WaitAt> estimated_waits(const SassFunction& function, const HotCode& hot) {
  std::map<std::pair<int, Stall>, double> found;
  const auto run = [&](const std::vector<int>& body, int turns, auto weight) {
    Warp warp(function);
    for (int t = 1; t < turns; ++t) warp.run(body, [](int, Stall, double) {});
    warp.run(body, [&](int k, Stall stall, double cycles) {
      found[{k, stall}] += cycles * weight(k);
    });
  };
  const auto factor = [](int depth) {
    return std::pow(kLoopFactor, std::clamp(depth, 0, kDeepest));
  };
  std::vector<bool> done(function.code.size(), false);
  for (const HotLoop& loop : hot.hot) {
    run(loop.own, loop.loops ? kTurns : 1, [&](int) { return factor(loop.depth); });
    for (const int k : loop.own) done[slot(k)] = true;
  }
  // The rest, once; of other loops (remainders, spinning) few turns are taken.
  std::vector<int> rest;
  for (const int k : hot.reached) {
    if (!done[slot(k)] && !hot.cold[slot(k)]) rest.push_back(k);
  }
  run(rest, 1, [&](int k) { return factor(hot.depth[slot(k)] - 1); });
  std::vector<WaitAt> waits;
  for (const auto& [key, cycles] : found) waits.push_back({key.first, key.second, cycles, cycles});
  return waits;
}

}  // namespace kernelpro
