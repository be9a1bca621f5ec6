// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "task/scaffold/scaffold.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kNewOptions[] = {
    {"NAME", "", "", "Name of the task; by default the file's.", false},
    {"--from", "FILE", "", "Code to start from: a .cu, .cpp, or a PyTorch extension (.cu, .py)."},
    {"--function", "NAME", "", "The function or kernel in that file; by default the likeliest."},
    {"--output", "DIR", "", "Folder to create; by default named after the task."},
};

std::string stem(const std::string& file) {
  const std::string name = basename(file);
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

// Throws Fatal, with the command to use instead, when `file` needs no new task.
void refuse_task(const std::string& file) {
  if (is_dir(file) && exists(join(file, "task.toml"))) {
    throw Fatal({ErrorKind::kBadInput, file + " is a task already", "kernelpro optimize " + file});
  }
  const std::string text = read_file(file, 8 << 20).value_or("");
  if (file.ends_with(".py") && contains(text, "class Model(") &&
      contains(text, "def get_inputs(") && !contains(text, "load_inline")) {
    throw Fatal({ErrorKind::kBadInput, file + " is a task already, as a PyTorch file",
                 "kernelpro optimize " + file});
  }
  const std::string folder = dirname(file);
  if (contains(text, "task.h") && contains(text, "launch(") && exists(join(folder, "task.toml"))) {
    throw Fatal({ErrorKind::kBadInput, file + " is a kernel of the task " + folder + " already",
                 "kernelpro optimize " + folder + " --start " + file});
  }
}

Scaffold make(const Options& options) {
  const std::string file = options.text("--from");
  if (file.empty()) {
    if (!options.has("NAME")) {
      throw Fatal({ErrorKind::kBadInput, "new needs a name, or code to start from",
                   "run kernelpro new NAME, or kernelpro new --from kernel.cu"});
    }
    return scaffold_empty(task_name(options.text("NAME")));
  }
  refuse_task(file);
  ScaffoldSource source;
  source.file = basename(file);
  source.text = require(read_file(file, 8 << 20));
  source.name = task_name(options.has("NAME") ? options.text("NAME") : stem(file));
  source.function = options.text("--function");
  source.include = [&](const std::string& name) -> std::optional<std::string> {
    auto text = read_file(join(dirname(absolute(file)), name), 8 << 20);
    return text ? std::optional<std::string>(std::move(*text)) : std::nullopt;
  };
  return require(scaffold_from(source));
}

void write(const std::string& folder, const Scaffold& scaffold) {
  if (exists(folder) && (!is_dir(folder) || !list_dir(folder).empty())) {
    throw Fatal({ErrorKind::kBadInput, folder + " exists and is not an empty folder",
                 "name another one with --output DIR"});
  }
  require(make_dirs(folder));
  for (const auto& [name, text] : scaffold.files) require(write_file(join(folder, name), text));
}

int run_new(const Options& options) {
  const Scaffold scaffold = make(options);
  const std::string folder = options.has("--output") ? options.text("--output") : scaffold.name;
  write(folder, scaffold);
  std::printf("made %s:", folder.c_str());
  for (const auto& [name, text] : scaffold.files) std::printf(" %s", name.c_str());
  std::printf("\n");
  for (const std::string& line : scaffold.derived) std::printf("  found: %s\n", line.c_str());
  for (const std::string& line : scaffold.confirm) std::printf("  to decide: %s\n", line.c_str());
  const std::string task = scaffold.task.empty() ? folder : join(folder, scaffold.task);
  std::printf(
      "Each open decision is a line with TODO(kernelpro). When all are made:\n  kernelpro evaluate "
      "%s %s\n",
      task.c_str(), join(folder, scaffold.kernel).c_str());
  return 0;
}

}  // namespace

extern const Subcommand kNew{"new", "Create a task, from scratch or from existing code.",
                             kNewOptions, run_new};

}  // namespace kernelpro
