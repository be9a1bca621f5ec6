// SPDX-License-Identifier: Apache-2.0
// The machine as the loop needs to know it: names for the record, ceilings for the roofline.
#pragma once

#include <optional>
#include <string>

namespace kernelpro {

// Measured, not from a datasheet. Other work on the machine can only lower such a rate, so the best
// of several measurements is the closest to the truth.
struct Ceilings {
  double copy_bytes_per_s = 0;    // device copy, read plus written
  double fma_flops_per_s = 0;     // fp32 fused multiply-adds, 2 FLOP each
  double tensor_flops_per_s = 0;  // half-precision matrix units; 0 where there are none
  std::string how;                // one line: what was run
  // False: other work ran beside every measurement, so the true rates may be higher.
  bool quiet = true;
  int rounds = 0;                // measurements that these are the best of; 0: not known
  double foreign = 0;            // share of the machine that others used meanwhile, mean; 0..1
  std::string measured_at = {};  // UTC, of the latest measurement; "" not known
};

// A kernel that runs this far above the measured ceilings is a reason to measure them again.
inline constexpr double kBeatsCeiling = 1.02;
// Above this, after measuring again, a share of the ceilings means nothing: a ceiling is too low,
// or the kernel does less work than its task declares.
inline constexpr double kBeyondCeiling = 1.05;

// The higher of each rate, the rounds of both, the later time; quiet when either was.
Ceilings better_of(const Ceilings& a, const Ceilings& b);
// Is a rate of `now` higher than that of `then` by more than a measurement's noise (1 %), or is it
// known to be undisturbed where that was not?
bool better_than(const Ceilings& now, const Ceilings& then);
// What the ceilings rest on, for people: "best of 3 measurements", "best of 6 measurements while
// other processes used 63 % of this machine". "" when not known.
std::string ceilings_basis(const Ceilings& ceilings);

// A share of the ceilings, for people: "97 %", or ">100 %" above kBeyondCeiling.
std::string ceiling_share(double fraction);
// What a share above kBeyondCeiling means and what to do next, as one sentence; else "".
std::string ceiling_note(double fraction);

struct Machine {
  std::string target;                  // "cpu" or "cuda"
  std::string name;                    // "AMD EPYC 9B14, 2 threads", "NVIDIA H200"
  std::string versions;                // compiler, driver, toolkit
  int parallel_units = 1;              // hardware threads, or SMs
  std::string arch;                    // "x86-64", "sm_90a"
  double l2_bytes = 0;                 // last-level cache
  double theoretical_bytes_per_s = 0;  // cuda: from clock and bus width; 0 unknown
  Ceilings ceilings;
};

std::string machine_to_json(const Machine& machine);
std::optional<Machine> machine_from_json(const std::string& json);

}  // namespace kernelpro
