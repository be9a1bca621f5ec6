// SPDX-License-Identifier: Apache-2.0
// JudgeCase: stages, on which modules are called.
#include "measure/worker/cuda/judge_case.h"

#if KERNELPRO_HAVE_CUDA

#include "core/task/key.h"

namespace kernelpro {

bool JudgeCase::has_stage(int stage) const {
  const auto at = static_cast<std::size_t>(count_ + stage);
  return stage >= 0 && stage < kStages && at < sets_.size() && !sets_[at].slots.empty();
}

Result<void> JudgeCase::open_stage(int stage) {
  if (stage < 0 || stage >= kStages) return fail(ErrorKind::kInternal, "no such stage", "");
  if (has_stage(stage)) return {};
  Set made;
  for (std::size_t i = 0; i < layout_.slots.size(); ++i) {
    if (i >= tensors_.size()) {  // a module allocates its own workspace
      made.slots.push_back(sets_[0].slots[i]);
      continue;
    }
    Result<std::shared_ptr<Buffer>> buffer = make_buffer(layout_.slots[i].mapping_bytes);
    if (!buffer) {  // nothing of it may keep memory
      for (std::size_t k = 0; k < i; ++k) own_.unmap(made.slots[k]->at);
      return tl::unexpected<Error>(buffer.error());
    }
    made.slots.push_back(std::move(*buffer));
  }
  while (sets_.size() <= static_cast<std::size_t>(count_ + stage)) sets_.emplace_back();
  stage_at(stage) = std::move(made);
  return clear_stage(stage, -1);
}

Result<std::vector<Fd>> JudgeCase::share_stage(int stage, const std::vector<int>& slots) const {
  std::vector<Fd> fds;
  for (const int slot : slots) {
    const auto i = static_cast<std::size_t>(slot);
    if (slot < 0 || i >= tensors_.size()) return fail(ErrorKind::kInternal, "no such slot", "");
    KP_ASSIGN(Fd fd, stage_at(stage).slots[i]->memory.share());
    fds.push_back(std::move(fd));
  }
  return fds;
}

Result<void> JudgeCase::clear_stage(int stage, int set) {
  Set& here = stage_at(stage);
  const std::uint64_t key = fresh_secret();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    Buffer& buffer = *here.slots[i];
    const std::uint64_t words = layout_.slots[i].mapping_bytes / 4;
    // What the module leaves unwritten is then known as such when the set is compared.
    const bool as_in_set = set >= 0 && tensors_[i].output;
    buffer.poison_key = as_in_set ? set_at(set).slots[i]->poison_key : key;
    if (words == 0) continue;
    KP_CUDA_TRY(kernels_->run("poison", words, buffer.at, buffer.poison_key, words));
  }
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return {};
}

Result<void> JudgeCase::reveal(int stage, int set) {
  const Set &from = set_at(set), &to = stage_at(stage);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::uint64_t bytes = tensors_[i].bytes;
    if (tensors_[i].output || bytes == 0) continue;
    KP_CUDA_TRY(kernels_->run("hand_over", bytes / 16, data_at(from, i), data_at(to, i), bytes));
  }
  return {};
}

Result<void> JudgeCase::collect(int stage, int set) {
  const Set &from = stage_at(stage), &to = set_at(set);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::uint64_t bytes = tensors_[i].bytes;
    if (!tensors_[i].output || bytes == 0) continue;
    KP_CUDA_TRY(kernels_->run("hand_over", bytes / 16, data_at(from, i), data_at(to, i), bytes));
  }
  return {};
}

Result<std::vector<Intrusion>> JudgeCase::stage_intrusions(int stage, int set) {
  Set& here = stage_at(stage);
  here.seals = set_at(set).seals;
  here.specs = set_at(set).specs;
  here.key = set_at(set).key;
  std::vector<SetFindings> found(1);
  KP_TRY(find_intrusions({count_ + stage}, &found));
  return std::move(found[0].intrusions);
}

}  // namespace kernelpro

#endif
