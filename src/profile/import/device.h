// SPDX-License-Identifier: Apache-2.0
// The GPU behind an imported report: what the report says about it, and what it can do at most
// where nothing was measured. Pure.
#pragma once

#include <string>

#include "core/evidence.h"
#include "core/machine.h"

namespace kernelpro {

// What profilers tell about a GPU; 0 or "" = not told.
struct DeviceFacts {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int major = 0;     // compute capability
  int minor = 0;
  double multiprocessors = 0;
  double bytes_per_s = 0;  // device memory, from clock and bus width
  double clock_hz = 0;     // highest of the multiprocessors
  double l2_bytes = 0;

  std::string arch() const;  // "sm_90"; "" = not known
};

// A machine with ceilings from datasheets, brought to what sound kernels reach of them (0.9 of the
// memory bandwidth, 0.93 of the fp32 rate, 0.8 of the matrix units, as measured on an H200). The
// GPU by its name; one that is not listed, by its clocks and widths. Machine::ceilings.how says
// which; ceilings stay 0 where neither is known.
Machine nominal_machine(const DeviceFacts& facts);

// The facts of a listed GPU by (a part of) its name: "H100", "rtx 4090". Without a hit, only the
// name is set.
DeviceFacts listed_device(const std::string& name);

// ceiling.*, machine.parallel_units and the roofline's floors, from `source` ("ceilings", "nominal
// peaks"). Call it once theory is in `evidence`. What is there already stays.
void add_ceilings(const Machine& machine, const std::string& source, Evidence* evidence);

}  // namespace kernelpro
