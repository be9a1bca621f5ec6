// SPDX-License-Identifier: Apache-2.0
#include "build/nvcc_steps.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace kernelpro {

namespace {

// Module id for names that both sides must agree on. nvcc has cudafe++ write it and cicc read it;
// here it exists before either runs. It need not be unique in a process: a kernel's object is
// loaded alone.
constexpr std::string_view kModuleId = "_6b70726f_9_kernel_cu_launch";
constexpr std::string_view kGenerateId = " --gen_module_id_file";
constexpr std::string_view kIdFile = "--module_id_file_name ";

struct Listing {
  std::vector<std::string> variables;  // NAME='value'
  std::vector<std::string> steps;
};

// "NAME=value" -> "NAME='value'"; "" for a command, and for option lists, which nvcc has already
// put into the commands.
std::string assignment(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || !is_identifier(line.substr(0, equals))) return "";
  const std::string_view value = trim(line.substr(equals + 1));
  if (value.find_first_of("'\"") != std::string_view::npos) return "";
  return std::string(line.substr(0, equals)) + "='" + std::string(value) + "'";
}

bool is_assignment(std::string_view line) {
  const std::size_t equals = line.find('=');
  return equals != std::string_view::npos && is_identifier(line.substr(0, equals));
}

Listing read(std::string_view text) {
  Listing listing;
  for (const std::string& line : lines(text)) {
    if (!line.starts_with("#$ ")) continue;
    const std::string command(trim(std::string_view(line).substr(3)));
    if (is_assignment(command)) {
      if (std::string set = assignment(command); !set.empty()) listing.variables.push_back(set);
    } else if (!command.empty() && !command.starts_with("rm ")) {
      listing.steps.push_back(command);
    }
  }
  return listing;
}

// Whether the step runs the program `name`, whatever its path and quotes.
bool runs(const std::string& step, std::string_view name) {
  std::string_view program = std::string_view(step).substr(0, step.find(' '));
  while (!program.empty() && program.back() == '"') program.remove_suffix(1);
  while (!program.empty() && program.front() == '"') program.remove_prefix(1);
  if (!program.ends_with(name)) return false;
  program.remove_suffix(name.size());
  return program.empty() || program.back() == '/';
}

// Index of the only step that runs the program, or npos.
std::size_t only(const std::vector<std::string>& steps, std::string_view program) {
  std::size_t found = std::string::npos;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!runs(steps[i], program)) continue;
    if (found != std::string::npos) return std::string::npos;
    found = i;
  }
  return found;
}

std::string chain(const std::vector<std::string>& steps) { return join_text(steps, " &&\n"); }

// The file after --module_id_file_name, with any quotes.
std::string id_file(const std::string& step) {
  const std::size_t at = step.find(kIdFile);
  if (at == std::string::npos) return "";
  const std::size_t from = at + kIdFile.size();
  return step.substr(from, step.find(' ', from) - from);
}

}  // namespace

std::optional<std::string> side_by_side(std::string_view text, std::string_view folder) {
  Listing listing = read(text);
  std::vector<std::string>& steps = listing.steps;
  const std::size_t host = only(steps, "cudafe++");
  const std::size_t device = only(steps, "cicc");
  const std::size_t assembler = only(steps, "ptxas");
  // The order in every nvcc so far: preprocess, cudafe++, preprocess, cicc, ptxas, ...
  if (host != 1 || device != 3 || assembler != 4) return std::nullopt;
  const std::string id = id_file(steps[host]);
  if (id.empty() || id != id_file(steps[device])) return std::nullopt;
  const auto joins = std::find_if(steps.begin() + 5, steps.end(), [](const std::string& step) {
    return contains(step, " -c ") && contains(step, ".cudafe1.cpp");
  });
  if (joins == steps.end()) return std::nullopt;
  std::string script;
  for (const std::string& variable : listing.variables) script += "export " + variable + "\n";
  for (std::string& step : steps) {
    step = replace_all(replace_all(std::move(step), kGenerateId, ""), folder, "$PWD");
  }
  script += "printf %s " + std::string(kModuleId) + " >" + id + "\n";
  // If a side fails, exit; the caller kills what is still running.
  script += "{\n" + chain({steps.begin() + 2, joins}) + "\n} >kp_device.log 2>&1 &\ndevice=$!\n";
  script += "{\n" + chain({steps.begin(), steps.begin() + 2}) +
            "\n} >kp_host.log 2>&1 || { cat kp_host.log; exit 1; }\n";
  script += "wait $device || { cat kp_host.log kp_device.log; exit 1; }\n";
  script += "cat kp_host.log kp_device.log\n";
  return script + chain({joins, steps.end()}) + "\n";
}

}  // namespace kernelpro
