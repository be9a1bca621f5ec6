// SPDX-License-Identifier: Apache-2.0
// The user's memory: one SQLite file of facts for all runs. Append-only: the file itself refuses
// changes and removals. Several processes may read and add at once. A problem with it never fails a
// run: a damaged file is set aside and a new one started, any other problem leaves it as it is, and
// either is reported in one sentence. One thread at a time per object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/proposal/fact.h"

namespace kernelpro {

// $KERNELPRO_STATE/facts.db, else the folder of base/state_dir.h.
std::string user_facts_path();

class FactFile {
 public:
  static constexpr int kVersion = 1;

  // Does not open the file yet.
  explicit FactFile(std::string path);
  // Makes the file read-only from here on: a damaged one is kStore and stays where it is.
  void only_read();
  ~FactFile();

  // Adds facts of one run in one transaction and returns how many; creates the file if needed.
  // Skips facts of a candidate that the file already has from this run. `when`: for facts without a
  // time; "" = now.
  Result<int> add(const std::string& run, const std::vector<Fact>& facts,
                  const std::string& when = "");

  // The latest `most` facts of a target, oldest first; if `family` is not empty, only facts of
  // `task_hash` or with a kind of `family` in theirs. Empty when there is no file. Skips unreadable
  // facts.
  Result<std::vector<Fact>> read(TargetKind target, const std::vector<std::string>& family,
                                 const std::string& task_hash, std::size_t most);
  // All, oldest first.
  Result<std::vector<Fact>> read_all();

  // One sentence for the user about the file; "" = nothing to report. Cleared by the call.
  std::string take_note();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernelpro
