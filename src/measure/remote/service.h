// SPDX-License-Identifier: Apache-2.0
// Answers the questions of a client elsewhere by this machine's stations. Plain JSON in and out;
// what the verbs take and give is in service.cc. Survives the connection that asked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "measure/station/station.h"

namespace kernelpro {

class ModuleReference;  // task/reference/module_reference.h

class Service {
 public:
  // Opens a group's stations; by default local ones (measure/station/local.h). Tests give others.
  explicit Service(StationMaker maker = nullptr);
  ~Service();

  // Blocks for as long as the work takes, under this thread's CancelScope; any number of threads.
  // Fails with Cause::kGone when the question names stations that this process has not opened:
  // those of a process that has ended.
  Result<std::string> answer(const std::string& verb, const std::string& body, const Phase& phase);

 private:
  struct Group;
  using GroupPtr = std::shared_ptr<Group>;
  Result<std::string> has_cuda(const std::string& body);
  Result<std::string> gpus(const std::string& body);
  Result<std::string> close(const std::string& body);
  Result<std::string> open_task_here(const std::string& body);
  Result<std::string> open_stations(const std::string& body);
  Result<std::string> at_station(const std::string& verb, const std::string& body,
                                 const Phase& phase);

  const StationMaker maker_;
  std::mutex mutex_;  // guards what follows
  TempDir files_;
  std::map<std::string, GroupPtr> groups_;
  std::map<std::string, std::shared_ptr<ModuleReference>> modules_;  // by a task's content hash
  std::uint64_t last_ = 0;
};

}  // namespace kernelpro
