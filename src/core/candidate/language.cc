// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/language.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/rows.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::string_view kOtherCpp[] = {"cc", "cxx"};
constexpr EntryWord kLaunch[] = {{"launch", "{"}};
constexpr EntryWord kLaunchOrPlan[] = {{"KP_LAUNCH"}, {"KP_LAUNCH_CLUSTER"}, {"launch", "{"}};
constexpr EntryWord kModelNew[] = {{"ModelNew"}};

constexpr LanguageRow kRows[] = {
    {.language = Language::kCpp,
     .name = "cpp",
     .title = "C++20",
     .target = TargetKind::kCpu,
     .native = true,
     .compiled = true,
     .knobs = true,
     .kernel = &Task::kernel_cpp,
     .reference = &Task::reference_cpp,
     .extension = "cpp",
     .other_extensions = kOtherCpp,
     .syntax = Syntax::kC,
     .fence = "cpp",
     .entries = kLaunch,
     .entry = "`launch`",
     .signature = "extern \"C\" void launch(const Args& args)",
     .empty_kernel = "#include \"task.h\"\n\nextern \"C\" void launch(const Args&) {}\n"},
    {.language = Language::kCuda,
     .name = "cuda",
     .title = "CUDA C++",
     .target = TargetKind::kCuda,
     .native = true,
     .compiled = true,
     .knobs = true,
     .kernel = &Task::kernel_cu,
     .reference = &Task::reference_cu,
     .extension = "cu",
     .syntax = Syntax::kC,
     .fence = "cuda",
     .entries = kLaunchOrPlan,
     .entry = "`launch` or KP_LAUNCH",
     .signature = "extern \"C\" void launch(const Args& args, cudaStream_t stream)",
     .forms = "cuda"},
    {.language = Language::kPython,
     .name = "python",
     .title = "PyTorch",
     .target = TargetKind::kCuda,
     .in_python = true,
     .extension = "py",
     .syntax = Syntax::kPython,
     .fence = "python",
     .entries = kModelNew,
     .entry = "`ModelNew`",
     .signature = "class ModelNew(torch.nn.Module)",
     .of_module = "\n\nclass ModelNew(Model):\n    pass\n",
     .instead_of_export = "a ModelNew file can be used as it is"},
};

static_assert(rows_are_in_order(kRows, &LanguageRow::language));

constexpr bool is_one_native(TargetKind target) {
  int count = 0;
  for (const LanguageRow& row : kRows) count += row.native && row.target == target ? 1 : 0;
  return count == 1;
}
static_assert(is_one_native(TargetKind::kCpu) && is_one_native(TargetKind::kCuda));

bool ends_in(std::string_view file, std::string_view extension) {
  return file.size() > extension.size() && file.ends_with(extension) &&
         file[file.size() - extension.size() - 1] == '.';
}

std::string title_with_entry(const LanguageRow& row) {
  return std::string(row.title) + " with " + std::string(row.entry);
}

}  // namespace

std::span<const LanguageRow> languages() { return kRows; }

const LanguageRow& language_row(Language language) {
  const auto at = static_cast<std::size_t>(language);
  KP_ASSERT(at < std::size(kRows));
  return kRows[at];
}

const LanguageRow& native_language(TargetKind target) {
  return *std::find_if(std::begin(kRows), std::end(kRows),
                       [&](const LanguageRow& row) { return row.native && row.target == target; });
}

const LanguageRow* language_of_file(std::string_view file) {
  for (const LanguageRow& row : kRows) {
    const bool other =
        std::any_of(row.other_extensions.begin(), row.other_extensions.end(),
                    [&](std::string_view extension) { return ends_in(file, extension); });
    if (other || ends_in(file, row.extension)) return &row;
  }
  return nullptr;
}

std::string_view language_name(Language language) { return language_row(language).name; }

std::optional<Language> language_from_name(std::string_view name) {
  for (const LanguageRow& row : kRows) {
    if (row.name == name) return row.language;
  }
  return std::nullopt;
}

std::string language_names() { return names_of(kRows); }

std::string kernel_file_name(const LanguageRow& row) {
  return "kernel." + std::string(row.extension);
}

const std::string& kernel_of(const Task& task, const LanguageRow& row) {
  if (row.kernel != nullptr) return task.*row.kernel;
  static const std::string kNone;
  const auto found = task.other_kernels.find(std::string(row.extension));
  return found == task.other_kernels.end() ? kNone : found->second;
}

void set_kernel(const LanguageRow& row, std::string source, Task* task) {
  (row.kernel != nullptr ? task->*row.kernel : task->other_kernels[std::string(row.extension)]) =
      std::move(source);
}

const std::string& native_kernel(const Task& task, TargetKind target) {
  return task.*native_language(target).kernel;
}

std::string language_files() {
  std::string text;
  for (const LanguageRow& row : kRows) {
    const bool last = &row == std::end(kRows) - 1;
    text += std::string(text.empty() ? ""
                        : last       ? " or "
                                     : ", ") +
            "." + std::string(row.extension) + " (" + title_with_entry(row) + ")";
  }
  return text;
}

std::string language_help() {
  std::string text;
  for (const LanguageRow& row : kRows) {
    text += std::string(text.empty() ? "" : "; ") + std::string(row.name) + ": " +
            title_with_entry(row) + ", " + std::string(target_name(row.target)) + " target";
  }
  return text;
}

}  // namespace kernelpro
