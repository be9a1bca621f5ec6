// SPDX-License-Identifier: Apache-2.0
// The searches that clients start: each is a `kernelpro optimize` process of its own, which
// outlives the server. At most one at a time, and none while a client's kernel is timed.
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/runs/runs.h"

namespace kernelpro {

class Runners {
 public:
  // `folder`: where run folders go.
  explicit Runners(std::string folder) : folder_(std::move(folder)) {}

  struct Started {
    std::string path;     // its folder
    bool exists = false;  // something is stored; else it still prepares (references, ceilings)
  };
  // Starts `kernelpro ARGUMENTS... --run FOLDER/<name>-<time>` and waits until the run exists; at
  // most a minute. Fails with kBusy as `check_idle`, and with kBadInput, and what the process
  // printed, when it ended before that. `cancelled`: polled; ends the process.
  Result<Started> start(const std::string& name, std::vector<std::string> arguments,
                        const std::function<bool()>& cancelled);
  // Fails with kBusy while a search that was started here runs.
  Result<void> check_idle();
  // The run with this name, id or last part of the name; "": the one started last, else the one
  // that changed last. One that was started here may have nothing stored yet. Fails with kBadInput
  // and names those that there are.
  Result<FoundRun> find(const std::string& name);
  // As stop_run; a search that was started here and still prepares is stopped, too.
  Result<void> stop(const std::string& path);
  // Whether the search was started here and its process still runs.
  bool running(const std::string& path);
  // The last lines that a run started here has printed; "" for others.
  std::string said(const std::string& path, std::size_t count);

  const std::string& folder() const { return folder_; }

 private:
  const std::string folder_;
  std::mutex mutex_;                   // guards the members below
  std::map<std::string, pid_t> pids_;  // by the run's folder; 0: it has ended
  std::string last_;
};

}  // namespace kernelpro
