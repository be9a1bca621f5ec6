// SPDX-License-Identifier: Apache-2.0
// Which earlier instructions made a warp wait, for each stall reason. After GPA (HPCToolkit's
// GPUAdvisor-Blame.cpp) and LEO (arXiv:2604.20032): producers by registers and scoreboards, pruned
// by opcode class and by latencies that the path already covers; those left share by
// 1/distance times how often each issues. Pure.
#pragma once

#include <vector>

#include "core/evidence/stall.h"
#include "profile/places/slices.h"
#include "profile/sass/loops.h"

namespace kernelpro {

// How often each instruction issues and how much is waited at it, by index; any unit.
struct CodeLoad {
  std::vector<double> issued;
  std::vector<double> waited;  // exposed waits, those at barriers left out
};

// Whether it answers by way of the L1 cache and beyond, and so by the long scoreboard.
bool answers_far(const SassInstruction& i);

struct Blamed {
  int instruction = 0;
  double part = 0;  // 0..1
};

// The instruction that waits, of a sample at instruction `k`.
// The hardware counts these waits behind the instruction that waits: in none of 88 programs on an
// H200 (8 of them with rings of asynchronous copies) did a costly one lie at DEPBAR, BAR or MEMBAR.
// Where control words are not known, nothing tells a wait for copies from one for a load that the
// next instruction reads.
int waiter_of(const SassFunction& kernel, int k, Stall stall);
// What the warps at `waiter` wait for. On an H200 two waits for matrix products go by other names:
// the wait for a group of them (WARPGROUP.DEPBAR) counts as one at a barrier, and a product that
// waits for the one before it as an arrival of its warpgroup, or, in the counters, as gmma. All of
// 30 kernels with warpgroup products showed this: no sample had the reason gmma, and the share of
// warpgroup_arrive in the samples, which lie at HGMMA, was that of gmma in the counters.
Stall awaited_at(const SassFunction& kernel, int waiter, Stall stall);

class Blamer {
 public:
  // All must outlive it.
  Blamer(const SassFunction& function, const HotCode& hot, const ControlFlow& control,
         const CodeLoad& load);

  // The largest part first; parts add up to at most 1. Empty: no producer is known.
  std::vector<Blamed> blame(int instruction, Stall stall) const;

 private:
  struct Candidate {
    int instruction;
    double weight;
  };
  static std::vector<Blamed> shared(const std::vector<Candidate>& candidates);
  std::vector<Blamed> weighed(const std::vector<Reached>& producers) const;
  std::vector<Blamed> scoreboard(int use, bool far) const;
  std::vector<Blamed> fixed_latency(int use) const;
  std::vector<Blamed> preceding(int use, bool (*is)(const SassInstruction&),
                                bool (*stops)(const SassInstruction&)) const;
  std::vector<Blamed> async_copies(int use) const;
  std::vector<Blamed> from_other_warps(int use) const;
  std::vector<Blamed> since_barrier(int use) const;
  std::vector<Blamed> unit(int use, Stall stall) const;
  const SassInstruction& at(int index) const { return f_.code[static_cast<std::size_t>(index)]; }
  double issued(int index) const;

  const SassFunction& f_;
  const HotCode& hot_;
  const CodeLoad& load_;
  Slicer slicer_;
};

}  // namespace kernelpro
