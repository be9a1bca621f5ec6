// SPDX-License-Identifier: Apache-2.0
#include "task/load/start.h"

#include "core/candidate/knobs.h"

namespace kernelpro {

namespace {

// The start for a PyTorch file without a kernel.
Candidate module_itself(const Module& module, TargetKind target) {
  Candidate candidate;
  for (const LanguageRow& row : languages()) {
    if (row.target != target || row.of_module.empty()) continue;
    candidate.language = row.language;
    candidate.source = module.source;
    if (!candidate.source.ends_with('\n')) candidate.source += '\n';
    candidate.source += row.of_module;
    candidate.origin = {Origin::kStart, 0, "The PyTorch module itself.", {}};
    return candidate;
  }
  const LanguageRow& native = native_language(target);
  candidate.language = native.language;
  candidate.source = native.empty_kernel;
  candidate.origin = {Origin::kStart, 0, "An empty kernel: the task has none to begin from.", {}};
  return candidate;
}

// The language of the starting kernel; null: the task has none. One for the target's own language
// goes first.
const LanguageRow* start_language(const Task& task, TargetKind target) {
  const LanguageRow& native = native_language(target);
  if (!kernel_of(task, native).empty()) return &native;
  for (const LanguageRow& row : languages()) {
    if (!row.native && !kernel_of(task, row).empty()) return &row;
  }
  return nullptr;
}

}  // namespace

Result<Candidate> start_candidate(const Task& task, TargetKind target) {
  const LanguageRow* row = start_language(task, target);
  if (row == nullptr && task.module) return module_itself(*task.module, target);
  if (row == nullptr) {
    return fail(ErrorKind::kBadInput,
                "the task " + task.name + " has no starting kernel for the " +
                    std::string(target_name(target)) + " target",
                "put one into its folder as " + kernel_file_name(native_language(target)));
  }
  if (row->target != target) {
    return fail(ErrorKind::kBadInput,
                "the " + std::string(target_name(target)) + " target runs no " +
                    std::string(row->title) + " candidates to start from",
                "use --target " + std::string(target_name(row->target)) + ", or start from a ." +
                    std::string(native_language(target).extension));
  }
  const std::string idea =
      row->knobs ? "The task's own kernel with the first value of each knob."
                 : "The " + std::string(row->title) + " implementation that was given.";
  auto candidate =
      candidate_of(task, row->language, kernel_of(task, *row), {Origin::kStart, 0, idea, {}});
  if (!candidate) candidate.error().message.insert(0, kernel_file_name(*row) + ", ");
  return candidate;
}

}  // namespace kernelpro
