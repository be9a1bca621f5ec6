// SPDX-License-Identifier: Apache-2.0
// Where the record of findings lives, and how a step becomes an entry of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/proposal.h"
#include "diagnose/record.h"

namespace kernelpro {

// A step that named a finding of its parent: what was promised and what was measured.
struct ToolStep {
  std::int64_t candidate = 0;
  std::string tool;
  std::string tag;    // of the prescription; "" = not named
  double likely = 1;  // speed-ups that the parent's diagnosis promised
  double upper = 1;
  double measured = 0;  // the parent's time over the candidate's; 0 = not correct
  std::string record;   // hash of the record that the promise was made with
};

// nullopt when the candidate names no finding that its parent's diagnosis has, or does not compile.
// Times are comparable ones (Ledger::comparable_us); `child_us` 0 = not correct. Pure.
std::optional<ToolStep> tool_step(const Known& parent, const Known& child, double parent_us,
                                  double child_us);

// $KERNELPRO_STATE/tools.json, else in $KERNELPRO_CACHE where that is set, else
// $XDG_STATE_HOME/kernelpro, else ~/.local/state/kernelpro.
std::string user_record_path();

// A missing file is an empty record, unless `must_exist`. Fails with kBadInput when it is no record
// or a newer version's.
Result<ToolRecord> read_record(const std::string& path, bool must_exist);
// Adds a step to the file; several processes may do so at once. Fails with kStore, and leaves the
// file alone when it is a newer version's or damaged.
Result<void> add_to_record(const std::string& path, const ToolStep& step);

// Every tool on the evidence, ranked with the record; the diagnosis says which one.
Diagnosis diagnose_with(const Evidence& evidence, const ToolRecord& record);

}  // namespace kernelpro
