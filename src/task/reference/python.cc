// SPDX-License-Identifier: Apache-2.0
#include "task/reference/python.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/files.h"
#include "base/hash.h"
#include "base/process/sandbox.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "embedded/python_package.h"
#include "task/reference/python_command.h"

namespace kernelpro {

namespace {

constexpr int kOldestMajor = 1;
constexpr int kOldestMinor = 13;
constexpr const char* kInstall =
    "install PyTorch (pip install torch, or the package python3-torch), or set KERNELPRO_PYTHON to "
    "an interpreter that has it";

// Finds torch's version without importing it, which would take seconds. Then the interpreter itself
// (we may have started a shim), and what a sandbox must let it read.
constexpr const char* kAsk = R"py(
import importlib.util, os, re, site, sys
spec = importlib.util.find_spec("torch")
version = "none"
if spec is not None and spec.origin:
    try:
        text = open(os.path.join(os.path.dirname(spec.origin), "version.py")).read()
        found = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", text)
        version = found.group(1) if found else "unknown"
    except OSError:
        version = "unknown"
print("kernelpro", "%d.%d" % sys.version_info[:2], version)
print("program", sys.executable)
print("user", site.getuserbase())
folders = [sys.prefix, sys.base_prefix] + [path for path in sys.path if path]
if spec is not None and spec.origin:
    folders.append(os.path.dirname(spec.origin))
for folder in dict.fromkeys(map(os.path.abspath, folders)):
    print("folder", folder)
)py";

// torch_version: "" if it cannot be run, "none" without torch.
PythonFacts facts_of(const std::string& interpreter) {
  PythonFacts facts;
  facts.interpreter = interpreter;
  Command command;
  command.argv = {interpreter, "-c", kAsk};
  command.cwd = "/";
  command.limits.wall_seconds = 30;
  const Result<Exit> exit = run(command);
  if (!exit || !exit->ok()) return facts;
  for (const std::string& line : lines(exit->output)) {
    const std::vector<std::string> parts = words(line);
    const std::size_t space = line.find(' ');
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (parts.size() == 3 && parts[0] == "kernelpro") facts.torch_version = parts[2];
    if (line.starts_with("program /")) facts.interpreter = rest;
    if (line.starts_with("user /")) facts.user_base = rest;
    if (line.starts_with("folder /")) facts.folders.push_back(rest);
  }
  return facts;
}

std::string program(const std::string& name) {
  if (!contains(name, "/")) return find_program(name);
  return ::access(name.c_str(), X_OK) == 0 && !is_dir(name) ? absolute(name) : "";
}

Result<PythonFacts> search(const std::string& wanted) {
  const char* variable = std::getenv("KERNELPRO_PYTHON");
  std::string chosen = wanted;
  if (chosen.empty() && variable != nullptr) chosen = variable;
  std::vector<std::string> tried = {chosen};
  if (chosen.empty()) tried = {"python3", "/usr/bin/python3"};
  std::string without;
  for (const std::string& name : tried) {
    const std::string path = program(name);
    if (path.empty() || path == without) continue;
    PythonFacts facts = facts_of(path);
    const std::string version = facts.torch_version;
    if (version == "none") {
      if (without.empty()) without = path;
      continue;
    }
    if (version.empty()) {
      return fail(ErrorKind::kEnvironment, path + " does not run as a Python interpreter",
                  "set KERNELPRO_PYTHON to one that works");
    }
    if (version != "unknown" && !version_at_least(version, kOldestMajor, kOldestMinor)) {
      return fail(ErrorKind::kEnvironment,
                  path + " has PyTorch " + version + ", but 1.13 is the oldest that works",
                  "install a newer PyTorch, or set KERNELPRO_PYTHON to another interpreter");
    }
    return facts;
  }
  if (!without.empty()) return fail(ErrorKind::kEnvironment, without + " has no PyTorch", kInstall);
  return fail(
      ErrorKind::kEnvironment,
      chosen.empty() ? "there is no python3 on PATH" : "there is no Python interpreter " + chosen,
      chosen.empty() ? "install Python 3.8 or newer with PyTorch"
                     : "correct the path, or unset KERNELPRO_PYTHON");
}

}  // namespace

std::vector<std::string> candidate_roots(const PythonFacts& facts) {
  namespace fs = std::filesystem;
  std::vector<std::string> roots = program_roots(facts.interpreter);
  std::error_code error;
  const std::string kept[] = {fs::weakly_canonical(cache_dir(), error).string() + "/",
                              fs::current_path(error).string() + "/"};
  const char* variable = std::getenv("PYTHONPATH");
  for (const std::string& named : split(variable == nullptr ? "" : variable, ':')) {
    const std::string folder = named.empty() ? "" : fs::weakly_canonical(named, error).string();
    if (folder.empty() || holds_homes(folder)) continue;
    const auto inside = [&](const std::string& each) { return each.starts_with(folder + "/"); };
    if (std::ranges::none_of(kept, inside)) roots.push_back(folder);
  }
  return roots;
}

bool version_at_least(const std::string& version, int major, int minor) {
  int a = 0, b = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &a, &b) != 2) return true;  // a build from source
  return a != major ? a > major : b >= minor;
}

Result<PythonFacts> find_python(const std::string& wanted) {
  static std::mutex mutex;
  static std::map<std::string, PythonFacts> known;
  const char* variable = std::getenv("KERNELPRO_PYTHON");
  const std::string key = wanted.empty() && variable != nullptr ? variable : wanted;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto it = known.find(key); it != known.end()) return it->second;
  Result<PythonFacts> facts = search(wanted);
  if (facts) known[key] = *facts;  // do not remember failures: the user may fix them
  return facts;
}

Result<std::string> unpacked_package() {
  std::string all;
  for (const auto& file : kPythonPackage) {
    all += std::string(file.name) + '\0' + std::string(*file.text) + '\0';
  }
  const std::string folder = join(join(cache_dir(), "python"), hash_hex(all));
  const std::string package = join(folder, "kernelpro_torch");
  KP_TRY(make_dirs(package));
  for (const auto& file : kPythonPackage) {
    const std::string path = join(package, file.name);
    const Result<std::string> there = exists(path) ? read_file(path) : Result<std::string>("");
    if (there && *there == *file.text) continue;
    KP_TRY(write_file(path, *file.text));
  }
  return package;
}

Result<PythonCommand> python_command(const std::string& role, const std::string& python) {
  KP_ASSIGN(const PythonFacts facts, find_python(python));
  KP_ASSIGN(const std::string package, unpacked_package());
  PythonCommand command;
  command.argv = {facts.interpreter, join(package, "__main__.py"), role};
  command.env = {"PYTHONIOENCODING=utf-8", "PYTHONUNBUFFERED=1"};
  return command;
}

}  // namespace kernelpro
