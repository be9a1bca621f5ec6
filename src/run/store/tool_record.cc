// SPDX-License-Identifier: Apache-2.0
#include "run/store/tool_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"
#include "base/state_dir.h"
#include "base/text.h"

namespace kernelpro {

std::optional<ToolStep> tool_step(const Known& parent, const Known& child, double parent_us,
                                  double child_us) {
  const FindingRef& answers = child.candidate.origin.answers;
  if (answers.empty() || parent_us <= 0) return std::nullopt;
  // Code that does not compile says nothing about the advice that it followed.
  if (std::holds_alternative<CompileError>(child.evaluation.outcome)) return std::nullopt;
  const Finding* finding = answered(parent.diagnosis, answers);
  if (finding == nullptr) return std::nullopt;
  ToolStep step;
  step.candidate = child.id;
  step.tool = answers.tool;
  step.tag = answers.tag;
  step.likely = finding->likely_speedup;
  step.upper = finding->upper_speedup;
  step.measured = child_us > 0 ? parent_us / child_us : 0;
  step.record = parent.diagnosis.record;
  return step;
}

std::string user_record_path() { return join(state_dir(), "tools.json"); }

Result<ToolRecord> read_record(const std::string& path, bool must_exist) {
  if (!must_exist && !exists(path)) return ToolRecord();
  KP_ASSIGN(const std::string text, read_file(path, 16 << 20));
  auto record = record_from_json(text);
  if (!record) {
    return fail(ErrorKind::kBadInput,
                path + " is not a record of findings, or it is from another version of KernelPro",
                "name another file, or move this one away");
  }
  return std::move(*record);
}

Result<void> add_to_record(const std::string& path, const ToolStep& step) {
  KP_TRY(make_dirs(dirname(absolute(path))));
  const std::string lock_path = path + ".lock";
  const Fd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  // Released with the descriptor. Without the lock (a file system that does not support it), a step
  // may be lost when two runs end one at the same moment; nothing worse.
  if (lock.valid()) static_cast<void>(::flock(lock.get(), LOCK_EX));
  KP_ASSIGN(auto record, read_record(path, false));
  record.add(step.tool, step.likely, step.measured);
  return write_file(path, record_to_json(record) + "\n");
}

}  // namespace kernelpro
