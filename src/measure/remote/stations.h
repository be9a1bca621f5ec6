// SPDX-License-Identifier: Apache-2.0
// Stations on this machine or elsewhere, by the addresses in StationSettings::stations: what
// commands measure through. Adding a way to reach a station: a form of station_address
// (measure/remote/address.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/task/task.h"
#include "measure/station/ahead.h"
#include "measure/station/station.h"
#include "task/open/open_task.h"

namespace kernelpro {

class Connection;       // measure/remote/connection.h
class ModuleReference;  // task/reference/module_reference.h

// Opens the stations of every address side by side, each with the settings' GPUs there; without an
// address, local ones (measure/station/local.h has `module` and `tools`). Include folders are not
// sent: they are this machine's.
StationMaker stations_anywhere(std::shared_ptr<ModuleReference> module = nullptr,
                               ToolsAhead tools = nullptr);

// The machine on which a command opens its task. While it lives, so does the connection.
class Host {
 public:
  // The first of `addresses`; none: this machine. Fails as Connection::to does.
  static Result<Host> of(const std::vector<std::string>& addresses);

  bool here() const { return connection_ == nullptr; }
  // As choose_gpus (machine/gpu_watch.h), there.
  Result<std::vector<std::string>> gpus(const std::vector<std::string>& named) const;
  // Whether the cuda target can be used there. REQUIRES: not here.
  Result<bool> has_cuda() const;
  // As open_task; a PyTorch file is described there, and `module` is then null.
  Result<OpenedTask> open(const std::string& path, const OpenSettings& settings) const;

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace kernelpro
