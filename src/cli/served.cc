// SPDX-License-Identifier: Apache-2.0
#include "cli/served.h"

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "run/store/fact_file.h"
#include "run/store/tool_record.h"

namespace kernelpro {

DeskSettings read_desk_settings(const Options& options) {
  DeskSettings settings;
  if (options.has("TASKS")) settings.roots = lines(options.text("TASKS"));
  for (const std::string& root : settings.roots) {
    if (exists(root)) continue;
    throw Fatal({ErrorKind::kBadInput, "there is no task or folder " + root,
                 "name folders that contain tasks, or none for the current folder"});
  }
  settings.runs = options.text("--runs");
  settings.target = options.text("--target");
  settings.gpu = options.text("--gpu");
  settings.stations = read_stations(options);
  settings.host = require(Host::of(settings.stations));
  settings.include_dirs = read_include_dirs(options);
  settings.python = options.text("--python");
  settings.timeout_s = options.real("--timeout");
  settings.counters = counter_set_from_name(options.text("--profile")).value_or(CounterSet::kOff);
  if (!options.flag("--no-record")) {
    settings.record = absolute(user_record_path());
    settings.facts = absolute(user_facts_path());
  }
  return settings;
}

}  // namespace kernelpro
