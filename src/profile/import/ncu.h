// SPDX-License-Identifier: Apache-2.0
// Evidence from Nsight Compute: its CSV in every shape that it prints, and .ncu-rep files through
// an installed ncu. Reports come from anywhere: other GPUs, other versions, cut off. What can be
// used is used, what cannot is said in `notes`; only a text without a single launch is an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/evidence.h"
#include "profile/import/device.h"

namespace kernelpro {

struct NcuSettings {
  // How many calls of the task the report holds; sums and launches are divided by it.
  int calls = 1;
  // Only kernels whose name contains it; "" = all.
  std::string kernel;
};

struct NcuImport {
  // `kernels`, longest first, each with all launches of one kernel taken together: sums are added,
  // rates and shares are means weighted by time, launch__* are the longest launch's. Of the call:
  // timing.median (the kernels' summed time), plan.kernels, machine.parallel_units. Texts:
  // "target", "arch", "device", "profiler".
  Evidence evidence;
  DeviceFacts device;
  int launches = 0;
  std::vector<std::string> notes;  // sentences
};

// Whether a counter is an amount, which adds up over launches; rates, shares and means do not.
bool adds_up(std::string_view metric);

// Whether `text` may be ncu's CSV, perhaps between lines of other programs, or only its messages.
bool is_ncu_csv(std::string_view text);

// kBadInput when there is no launch in it; the message says what was found instead (a refused
// permission, another page) and how to export.
Result<NcuImport> import_ncu_csv(std::string_view text, const NcuSettings& settings);

// Runs `ncu --import` on the file. kBadInput when it cannot read it, kEnvironment without ncu: then
// the message says how to export on the machine that has it. Blocks.
Result<NcuImport> import_ncu_report(const std::string& path, const NcuSettings& settings);

}  // namespace kernelpro
