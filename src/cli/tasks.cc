// SPDX-License-Identifier: Apache-2.0
#include "cli/tasks.h"

#include <charconv>

#include "base/text.h"
#include "cli/commands.h"
#include "measure/ceilings/ceilings.h"
#include "run/libraries.h"

namespace kernelpro {

std::map<std::string, std::string> read_pairs(const Options& options, const std::string& name) {
  std::map<std::string, std::string> pairs;
  if (!options.has(name)) return pairs;
  for (const std::string& setting : lines(options.text(name))) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == setting.size()) {
      throw Fatal({ErrorKind::kBadInput, name + " \"" + setting + "\" is not NAME=VALUE",
                   "write, for example, " + name + " SIZE=32"});
    }
    pairs[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return pairs;
}

std::vector<std::string> read_include_dirs(const Options& options) {
  std::vector<std::string> named;
  if (options.has("--include")) named = lines(options.text("--include"));
  return require(include_dirs(named));
}

std::vector<std::string> read_stations(const Options& options) {
  return options.has("--station") ? lines(options.text("--station")) : std::vector<std::string>();
}

std::vector<std::string> read_gpus(const Options& options, const Host& host) {
  if (!options.has("--gpu")) return {};
  return require(host.gpus(lines(options.text("--gpu"))));
}

OpenSettings read_open_settings(const Options& options) {
  OpenSettings settings;
  settings.meanwhile = measure_ceilings;
  for (const auto& [name, text] : read_pairs(options, "--set")) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw Fatal({ErrorKind::kBadInput, "--set " + name + "=" + text + " is not an integer",
                   "--set replaces integers at the top of the file"});
    }
    settings.dims[name] = value;
  }
  settings.precision = precision_from_name(options.text("--precision"));
  settings.python = options.text("--python");
  return settings;
}

}  // namespace kernelpro
