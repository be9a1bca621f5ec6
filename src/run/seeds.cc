// SPDX-License-Identifier: Apache-2.0
#include "run/seeds.h"

#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "run/store/store.h"
#include "run/store/winner.h"
#include "task/load/loader.h"
#include "task/load/start.h"

namespace kernelpro {

namespace {

std::size_t rank_of(const Task& task, std::size_t i) {
  if (task.cases.empty() || task.cases.back().shapes.size() <= i) {
    return task.tensors[i].shape.size();
  }
  return task.cases.back().shapes[i].size();
}

// A task's tensors as a kernel sees them: "in x fp32[2], out y fp32[1]".
std::string face_of(const Task& task) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    const Tensor& tensor = task.tensors[i];
    all.push_back((tensor.role == Role::kOutput ? "out " : "in ") + tensor.name + " " +
                  std::string(dtype_name(tensor.dtype)) + "[" + std::to_string(rank_of(task, i)) +
                  "]");
  }
  return join_text(all, ", ");
}

Result<void> same_family(const Task& theirs, const Task& task, const std::string& from) {
  if (face_of(theirs) == face_of(task)) return {};
  return fail(
      ErrorKind::kBadInput,
      from + " is about other tensors (" + face_of(theirs) + "; here: " + face_of(task) + ")",
      "begin from work on the same operator; sizes may differ");
}

Result<Candidate> of_task(const std::string& folder, const Task& task, TargetKind target) {
  KP_ASSIGN(auto theirs, load_task(folder));
  KP_TRY(same_family(theirs, task, folder));
  KP_ASSIGN(auto candidate, start_candidate(theirs, target));
  candidate.origin = {Origin::kSeed, 0, "The kernel of the task folder " + folder + ".", {}};
  return candidate;
}

Result<Candidate> of_run(const std::string& directory, const Task& task, TargetKind target) {
  KP_ASSIGN(const auto store, Store::open(directory, Store::Mode::kRead));
  KP_ASSIGN(const auto header, store->header());
  if (header.target != target) {
    return fail(
        ErrorKind::kBadInput,
        directory + " is a run on the " + std::string(target_name(header.target)) + " target",
        "begin from a run on the target that this one is for");
  }
  KP_TRY(same_family(header.task, task, directory));
  KP_ASSIGN(const auto all, store->candidates(false));
  KP_ASSIGN(const auto confirmation, store->confirmation());
  const Language language = native_language(target).language;
  const RankedRun run(header, all);
  const StoredCandidate* best =
      winner_of(run, confirmation ? &*confirmation : nullptr, [&](const StoredCandidate& each) {
        return each.known.candidate.language == language;
      }).candidate;
  if (best == nullptr) {
    return fail(ErrorKind::kBadInput, directory + " has no correct kernel to begin from",
                "leave it out, or give one with --start FILE");
  }
  Candidate candidate = best->known.candidate;
  candidate.origin = {
      Origin::kSeed,
      0,
      "The best of the run " + directory + ": candidate " + std::to_string(best->known.id) + ", " +
          human_us(score_us(best->known.evaluation)) + " there" +
          (header.task.precision == task.precision
               ? "."
               : ", where the precision owed was " +
                     std::string(precision_name(header.task.precision)) + "; here it is " +
                     std::string(precision_name(task.precision)) + "."),
      {}};
  return candidate;
}

}  // namespace

Result<std::vector<Candidate>> seeds(const std::vector<std::string>& from, const Task& task,
                                     TargetKind target) {
  std::vector<Candidate> all;
  for (const std::string& path : from) {
    const bool run = is_run(path);
    if (!run && !exists(join(path, "task.toml"))) {
      return fail(ErrorKind::kBadInput, path + " is neither a run nor a task folder",
                  "name a run's folder (`kernelpro list` shows runs) or a folder with task.toml");
    }
    KP_ASSIGN(auto candidate, run ? of_run(path, task, target) : of_task(path, task, target));
    KP_TRY(parse_knobs(candidate.source, reserved_names(task)));
    all.push_back(std::move(candidate));
  }
  return all;
}

}  // namespace kernelpro
