// SPDX-License-Identifier: Apache-2.0
// The file of the record of findings, and how a step becomes an entry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/proposal/proposal.h"
#include "diagnose/record.h"

namespace kernelpro {

// A step that named a finding of its parent: the promised and the measured speed-up.
struct ToolStep {
  std::int64_t candidate = 0;
  std::string tool;
  std::string tag;    // of the prescription; "" = not named
  double likely = 1;  // speed-ups that the parent's diagnosis promised
  double upper = 1;
  double measured = 0;  // the parent's time over the candidate's; 0 = not correct
  std::string record;   // hash of the record behind the promise
};

// nullopt when the candidate names no finding of its parent's diagnosis, or does not compile. Takes
// comparable times (Ledger::comparable_us); `child_us` 0 = not correct. Pure.
std::optional<ToolStep> tool_step(const Known& parent, const Known& child, double parent_us,
                                  double child_us);

// tools.json in the folder of base/state_dir.h.
std::string user_record_path();

// A missing file is an empty record, unless `must_exist`. Fails with kBadInput when the file is not
// a record or is a newer version's.
Result<ToolRecord> read_record(const std::string& path, bool must_exist);
// Adds a step to the file; several processes may do so at once. Fails with kBadInput, without
// touching the file, when it is damaged or a newer version's; with kStore when it cannot be
// written.
Result<void> add_to_record(const std::string& path, const ToolStep& step);

}  // namespace kernelpro
