// SPDX-License-Identifier: Apache-2.0
// The GPU behind an imported report: its facts from the report, and nominal ceilings where nothing
// was measured. Pure.
#pragma once

#include <string>

#include "core/evidence/evidence.h"
#include "core/machine/machine.h"

namespace kernelpro {

// GPU facts as profilers report them; 0 or "" = not reported.
struct DeviceFacts {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int major = 0;     // compute capability
  int minor = 0;
  double multiprocessors = 0;
  double bytes_per_s = 0;  // device memory, from clock and bus width
  double clock_hz = 0;     // highest multiprocessor clock
  double l2_bytes = 0;

  std::string arch() const;  // "sm_90"; "" = unknown
};

// A machine with datasheet ceilings, scaled to what good kernels reach (0.9 of the memory
// bandwidth, 0.93 of the fp32 rate, 0.8 of the matrix units, as measured on an H200). Looks the GPU
// up by name; an unlisted one is computed from its clocks and widths. Machine::ceilings.how records
// which; ceilings stay 0 when neither is known.
Machine nominal_machine(const DeviceFacts& facts);

// The facts of a listed GPU by (part of) its name: "H100", "rtx 4090". If it is not listed, only
// the name is set.
DeviceFacts listed_device(const std::string& name);

// Adds ceiling.*, machine.parallel_units and the roofline's floors, from `source` ("ceilings",
// "nominal peaks"). Call it once theory is in `evidence`. Existing items stay.
void add_ceilings(const Machine& machine, const std::string& source, Evidence* evidence);

}  // namespace kernelpro
