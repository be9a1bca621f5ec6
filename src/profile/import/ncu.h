// SPDX-License-Identifier: Apache-2.0
// Evidence from Nsight Compute: its CSV in every layout, its details page as text, and .ncu-rep
// files through an installed ncu. Reports may come from other GPUs or versions, or be truncated:
// whatever is usable is used, the rest is reported in `notes`; only a text without a single launch
// is an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/evidence/evidence.h"
#include "core/evidence/samples.h"
#include "profile/import/device.h"

namespace kernelpro {

struct NcuSettings {
  // Number of task calls in the report; sums and launches are divided by it.
  int calls = 1;
  // Only kernels whose name contains this; "" = all.
  std::string kernel;
};

struct NcuImport {
  // `kernels`, longest first, each merging all launches of one kernel: sums are added, rates and
  // shares are time-weighted means, launch__* are the longest launch's. Of the call:
  // timing.median (the kernels' summed time), plan.kernels, machine.parallel_units. Texts:
  // "target", "arch", "device", "profiler".
  Evidence evidence;
  DeviceFacts device;
  // Of the kernels, under the names that ncu printed; from reports with a source page.
  SampleAnswers samples;
  std::string sass;  // the kernels' code (profile/import/ncu_source.h)
  // What was profiled, as the report names it: paths, or names that may lie beside it.
  std::vector<std::string> programs;
  int launches = 0;
  std::vector<std::string> notes;  // sentences
};

// Whether a counter is an amount that adds up over launches; rates, shares and means do not.
bool adds_up(std::string_view metric);

// Whether `text` may be ncu's CSV, perhaps mixed with other programs' output, or only ncu's
// messages.
bool is_ncu_csv(std::string_view text);

// kBadInput when it holds no launch; the message reports what was found instead (a refused
// permission, another page) and how to export.
Result<NcuImport> import_ncu_csv(std::string_view text, const NcuSettings& settings);

// ncu's details page as text (profile/import/ncu_details.h). kBadInput without a metric that we
// know.
Result<NcuImport> import_ncu_details(std::string_view text, const NcuSettings& settings);

// ncu's source page alone (--page source --print-source sass --csv): samples and code, without
// counters. kBadInput when it holds no samples.
Result<NcuImport> import_ncu_source(std::string_view text, const NcuSettings& settings);

// Runs `ncu --import` on the file, for each page. kBadInput when ncu cannot read it; kEnvironment
// without ncu, and the message explains how to export on a machine that has it. Blocks.
Result<NcuImport> import_ncu_report(const std::string& path, const NcuSettings& settings);

}  // namespace kernelpro
