// SPDX-License-Identifier: Apache-2.0
// The user's memory: one SQLite file of facts for all runs. It only grows: the file itself refuses
// changes and removals. Several processes may read and add at once. It is never worth a run: a
// damaged file is set aside and a new one begun, anything else that is wrong with it leaves it as
// it is, and either is said in one sentence. One thread at a time per object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/fact.h"

namespace kernelpro {

// $KERNELPRO_STATE/facts.db, else where base/state_dir.h says.
std::string user_facts_path();

class FactFile {
 public:
  static constexpr int kVersion = 1;

  // Opens nothing yet.
  explicit FactFile(std::string path);
  // From now on the file is read alone: a damaged one is kStore and stays where it is.
  void only_read();
  ~FactFile();

  // Adds facts of one run in one transaction; the file is created where there is none. A fact of a
  // candidate that the file has from this run is left out. `when`: for facts that do not say; "" is
  // now. The number added.
  Result<int> add(const std::string& run, const std::vector<Fact>& facts,
                  const std::string& when = "");

  // The latest `most` facts of a target, oldest first; those of `task_hash` or whose family has a
  // kind of `family` only, when that is not empty. None where there is no file. What cannot be read
  // is left out.
  Result<std::vector<Fact>> read(TargetKind target, const std::vector<std::string>& family,
                                 const std::string& task_hash, std::size_t most);
  // All, oldest first.
  Result<std::vector<Fact>> read_all();

  // What happened to the file that a person should know, one sentence; "" nothing. Said once.
  std::string take_note();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernelpro
