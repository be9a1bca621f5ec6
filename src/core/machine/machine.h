// SPDX-License-Identifier: Apache-2.0
// The machine as the loop sees it: names for the record, ceilings for the roofline.
#pragma once

#include <optional>
#include <string>

namespace kernelpro {

// Measured, not from a datasheet. Other work can only lower a rate, so the best of several
// measurements is the closest to the truth.
struct Ceilings {
  double copy_bytes_per_s = 0;    // device copy, read plus written
  double fma_flops_per_s = 0;     // fp32 fused multiply-adds, 2 FLOP each
  double tensor_flops_per_s = 0;  // half-precision matrix units; 0 where there are none
  std::string how;                // one line: what was run
  // False: other work ran during every measurement, so the true rates may be higher.
  bool quiet = true;
  int rounds = 0;                // how many measurements these are the best of; 0: unknown
  double foreign = 0;            // mean fraction of the machine that others used meanwhile; 0..1
  std::string measured_at = {};  // UTC, of the latest measurement; "": unknown
};

// If a kernel exceeds the measured ceilings by this factor, measure them again.
inline constexpr double kBeatsCeiling = 1.02;
// A fraction above this, after measuring again, means nothing: a ceiling is too low, or the kernel
// does less work than its task declares.
inline constexpr double kBeyondCeiling = 1.05;

// The higher of each rate, the rounds of both, the later time; quiet if either was.
Ceilings better_of(const Ceilings& a, const Ceilings& b);
// Whether a rate of `now` exceeds that of `then` by more than measurement noise (1 %), or is known
// to be undisturbed where the old one was not.
bool better_than(const Ceilings& now, const Ceilings& then);
// Basis of the ceilings, for display: "best of 3 measurements", "best of 6 measurements while other
// processes used 63 % of this machine". "" when unknown.
std::string ceilings_basis(const Ceilings& ceilings);

// A fraction of the ceilings, for display: "97 %", or ">100 %" above kBeyondCeiling.
std::string ceiling_share(double fraction);
// For a fraction above kBeyondCeiling: its meaning and the next step, in one sentence; else "".
std::string ceiling_note(double fraction);

struct Machine {
  std::string target;                  // "cpu" or "cuda"
  std::string name;                    // "AMD EPYC 9B14, 2 threads", "NVIDIA H200"
  std::string versions;                // compiler, driver, toolkit
  int parallel_units = 1;              // hardware threads, or SMs
  std::string arch;                    // "x86-64", "sm_90a"
  std::string instruction_sets = {};   // cpu: "AVX2, FMA, AVX-512 F"; "": unknown
  std::string caches = {};             // cpu: "L1d 32 KiB, L2 1 MiB, L3 32 MiB"; "": unknown
  double l2_bytes = 0;                 // last-level cache
  double theoretical_bytes_per_s = 0;  // cuda: from clock and bus width; 0 unknown
  Ceilings ceilings;
};

std::string machine_to_json(const Machine& machine);
std::optional<Machine> machine_from_json(const std::string& json);

}  // namespace kernelpro
