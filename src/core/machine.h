// SPDX-License-Identifier: Apache-2.0
// The machine as the loop needs to know it: names for the record, ceilings for the roofline.
#pragma once

#include <optional>
#include <string>

namespace kernelpro {

// Measured, not from a datasheet.
struct Ceilings {
  double copy_bytes_per_s = 0;    // device copy, read plus written
  double fma_flops_per_s = 0;     // fp32 fused multiply-adds, 2 FLOP each
  double tensor_flops_per_s = 0;  // half-precision matrix units; 0 where there are none
  std::string how;                // one line: what was run
};

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
