// SPDX-License-Identifier: Apache-2.0
#include "cli/tasks.h"

#include <charconv>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "measure/ceilings/ceilings.h"
#include "run/choices.h"
#include "run/libraries.h"
#include "run/store/store.h"

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

KernelFile read_kernel(const std::string& file) {
  const LanguageRow* row = language_of_file(file);
  if (row == nullptr) {
    throw Fatal({ErrorKind::kBadInput, "cannot tell the language of " + file + " from its name",
                 "name it " + language_files()});
  }
  KernelFile kernel;
  kernel.path = file;
  kernel.language = row->language;
  kernel.source = require(read_file(file, kMaxSource));
  return kernel;
}

TargetKind target_of_kernels(const Host& host, const std::vector<KernelFile>& kernels) {
  bool cuda = false, cpp = false;
  for (const KernelFile& kernel : kernels) {
    const LanguageRow& row = language_row(kernel.language);
    cuda |= row.compiled && row.target == TargetKind::kCuda;
    cpp |= row.compiled && row.target == TargetKind::kCpu;
  }
  if (cuda && cpp) {
    throw Fatal({ErrorKind::kBadInput, "GPU and CPU kernels were given together",
                 "give .cu and .cpp files to separate commands"});
  }
  if (cuda) return TargetKind::kCuda;
  if (cpp) return TargetKind::kCpu;
  return require(choose_target(host, nullptr, "auto"));
}

std::optional<std::pair<std::string, std::int64_t>> candidate_named(const std::string& what) {
  const auto names_run = [](const std::string& path) { return is_dir(path) || is_run(path); };
  if (names_run(what)) return std::pair(what, std::int64_t{0});
  const std::size_t colon = what.rfind(':');
  if (colon == std::string::npos || !names_run(what.substr(0, colon))) return std::nullopt;
  const std::string digits = what.substr(colon + 1);
  if (digits.empty() || digits.size() > 15 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    throw Fatal({ErrorKind::kBadInput, "\"" + digits + "\" is not a candidate's number",
                 "write, for example, " + what.substr(0, colon) + ":17"});
  }
  return std::pair(what.substr(0, colon), static_cast<std::int64_t>(std::stoll(digits)));
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
