// SPDX-License-Identifier: Apache-2.0
#include "task/load/loader.h"

#include "base/files.h"
#include "base/text.h"
#include "core/candidate/language.h"
#include "task/load/limits.h"
#include "task/load/unfilled.h"

namespace kernelpro {

namespace {

// Reads a text file of the folder; "" if an optional one is missing.
Result<void> read_text(const std::string& path, bool required, const std::string& why,
                       std::string* out) {
  if (!exists(path) && !required) return {};
  if (!exists(path)) return fail(ErrorKind::kBadInput, path + " is missing", why);
  KP_ASSIGN(std::string text, read_file(path, kMaxTextBytes));
  const std::string plain = replace_all(replace_all(text, "\r", " "), "\f", " ");
  if (printable(plain) != plain) {
    return fail(ErrorKind::kBadInput, path + " is not valid UTF-8 text",
                "save it as UTF-8 without control characters");
  }
  if (trim(text).empty()) {
    return fail(ErrorKind::kBadInput, path + " is empty", "write it or remove it; " + why);
  }
  KP_TRY(refuse_unfilled(text, path));
  *out = std::move(text);
  return {};
}

}  // namespace

Result<Task> load_task(const std::string& folder, bool cpu_only) {
  if (!exists(folder)) {
    return fail(ErrorKind::kBadInput, "there is no task folder " + folder,
                "give the path of a folder with a task.toml, such as examples/softmax");
  }
  if (!is_dir(folder)) {
    return fail(ErrorKind::kBadInput, folder + " is not a folder",
                "give the folder that holds task.toml, not a file in it");
  }
  const std::string path = join(folder, "task.toml");
  if (!exists(path)) {
    return fail(ErrorKind::kBadInput, folder + " has no task.toml",
                "write one; docs/task-format.md describes it and examples/ has some");
  }
  KP_ASSIGN(const std::string text, read_file(path, kMaxTextBytes));
  KP_TRY(refuse_unfilled(text, path));
  KP_ASSIGN(Task task, parse_task(text, path));

  const bool cuda = !cpu_only && !cases_for(task, TargetKind::kCuda).empty();
  KP_TRY(read_text(join(folder, "reference.cpp"), true,
                   "every task needs a reference in C++: extern \"C\" void reference(const "
                   "ReferenceArgs& args)",
                   &task.reference_cpp));
  KP_TRY(read_text(join(folder, "reference.cu"), cuda,
                   "cases on the cuda target need a reference in CUDA; write one, or give every "
                   "case targets = [\"cpu\"]",
                   &task.reference_cu));
  for (const LanguageRow& row : languages()) {
    if (!row.native) continue;
    KP_TRY(read_text(join(folder, kernel_file_name(row)), false, "it is optional",
                     &(task.*row.kernel)));
  }
  return task;
}

}  // namespace kernelpro
