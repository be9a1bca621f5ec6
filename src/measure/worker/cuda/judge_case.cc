// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/judge_case.h"

#if KERNELPRO_HAVE_CUDA

#include <cstring>
#include <set>

#include "core/task/key.h"

namespace kernelpro {

namespace {

std::vector<std::uint64_t> sizes_of(const std::vector<JudgeTensor>& tensors, bool reference) {
  std::vector<std::uint64_t> sizes;
  for (const JudgeTensor& t : tensors) {
    sizes.push_back(reference && t.output ? t.expected_bytes() : t.bytes);
  }
  return sizes;
}

}  // namespace

Result<JudgeCase> JudgeCase::open(const CudaDriver& cu, const CudaContext& context,
                                  TrustedKernels& kernels, std::vector<JudgeTensor> tensors,
                                  std::uint64_t workspace, int sets, int sharing) {
  KP_ASSIGN(std::uint64_t granularity, allocation_granularity(cu, context.device()));
  JudgeCase judge;
  judge.cu_ = &cu;
  judge.kernels_ = &kernels;
  judge.device_ = context.device();
  judge.seal_key_ = fresh_secret();
  judge.layout_ = make_layout(sizes_of(tensors, false), workspace, granularity, kCandidateBase);
  judge.reference_layout_ = make_layout(sizes_of(tensors, true), 0, granularity, kReferenceBase);
  judge.tensors_ = std::move(tensors);

  // One address range that holds every buffer as if nothing were shared.
  const std::uint64_t slots = judge.layout_.slots.size() * static_cast<std::uint64_t>(sets);
  const std::uint64_t scratch_bytes = (slots * 128 / granularity + 1) * granularity;
  std::uint64_t own_bytes = scratch_bytes;
  for (const AddressLayout* layout : {&judge.layout_, &judge.reference_layout_}) {
    for (const auto& slot : layout->slots) {
      own_bytes += static_cast<std::uint64_t>(sets + kStages) * slot.mapping_bytes;
    }
  }
  KP_ASSIGN(judge.own_, AddressRange::reserve(cu, 0, own_bytes));
  judge.own_next_ = judge.own_.base();
  KP_TRY(judge.make_sets(sets, sharing));
  KP_ASSIGN(judge.scratch_memory_, PhysicalMemory::create(cu, judge.device_, scratch_bytes));
  judge.scratch_ = judge.own_next_;
  judge.own_next_ += scratch_bytes;
  judge.scratch_bytes_ = scratch_bytes;
  KP_TRY(
      judge.own_.map(judge.device_, judge.scratch_, scratch_bytes, judge.scratch_memory_.handle()));
  return judge;
}

Result<std::shared_ptr<JudgeCase::Buffer>> JudgeCase::make_buffer(std::uint64_t bytes) {
  auto buffer = std::make_shared<Buffer>();
  buffer->at = own_next_;
  if (bytes == 0) return buffer;
  Result<PhysicalMemory> memory = PhysicalMemory::create(*cu_, device_, bytes);
  if (!memory) {
    std::size_t free_bytes = 0, total = 0;
    cu_->MemGetInfo(&free_bytes, &total);
    return fail(ErrorKind::kBadInput,
                "GPU memory for a case: " + std::to_string(bytes >> 20) + " MiB are wanted, " +
                    std::to_string(free_bytes >> 20) + " MiB are free",
                "make the case smaller, or stop the other programs on this GPU");
  }
  buffer->memory = std::move(*memory);
  KP_TRY(own_.map(device_, own_next_, bytes, buffer->memory.handle()));
  own_next_ += bytes;
  return buffer;
}

Result<void> JudgeCase::make_sets(int sets, int sharing) {
  for (int s = 0; s < sets; ++s) {
    Set set;
    for (std::size_t i = 0; i < layout_.slots.size(); ++i) {
      const bool workspace = i >= tensors_.size();
      const bool shared =
          s > 0 &&
          (workspace || (s < sharing && is_input(i) && tensors_[i].role == Role::kParameter));
      if (shared) {
        set.slots.push_back(sets_[0].slots[i]);
        continue;
      }
      KP_ASSIGN(std::shared_ptr<Buffer> buffer, make_buffer(layout_.slots[i].mapping_bytes));
      set.slots.push_back(std::move(buffer));
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      set.expected.emplace_back();
      if (!tensors_[i].output) continue;
      KP_ASSIGN(set.expected.back(), make_buffer(reference_layout_.slots[i].mapping_bytes));
    }
    set.rms.assign(tensors_.size(), 0);
    set.scale.assign(tensors_.size(), 0);
    set.least.assign(tensors_.size(), 0);
    set.seals.assign(tensors_.size(), 0);
    sets_.push_back(std::move(set));
  }
  count_ = sets;
  return {};
}

bool JudgeCase::own_memory(int set, std::size_t slot) const {
  return set == 0 || set_at(set).slots[slot] != sets_[0].slots[slot];
}

std::uint64_t JudgeCase::data_at(const Set& set, std::size_t slot) const {
  const AddressLayout::Slot& s = layout_.slots[slot];
  return set.slots[slot]->at + (s.address - s.mapping);
}

std::uint64_t JudgeCase::expected_at(const Set& set, std::size_t tensor) const {
  const AddressLayout::Slot& s = reference_layout_.slots[tensor];
  return set.expected[tensor]->at + (s.address - s.mapping);
}

Result<std::vector<Fd>> JudgeCase::share(int set, const std::vector<int>& slots,
                                         bool expected) const {
  std::vector<Fd> fds;
  for (const int slot : slots) {
    const auto i = static_cast<std::size_t>(slot);
    const Buffer* buffer = expected ? set_at(set).expected[i].get() : set_at(set).slots[i].get();
    if (buffer == nullptr) return fail(ErrorKind::kInternal, "no such buffer", "");
    KP_ASSIGN(Fd fd, buffer->memory.share());
    fds.push_back(std::move(fd));
  }
  return fds;
}

Result<void> JudgeCase::draw(int index, const kp::Key& key,
                             const std::vector<kp::DrawSpec>& specs) {
  Set& set = set_at(index);
  set.key = key;
  set.specs = specs;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (t.output) continue;
    const auto count = static_cast<std::uint64_t>(t.elements);
    KP_CUDA_TRY(
        kernels_->run("draw", count, data_at(set, i), specs[i], key, std::uint64_t{i}, count));
  }
  return {};
}

Result<void> JudgeCase::poison_buffer(Buffer* buffer, std::size_t slot, std::uint64_t key,
                                      bool slack) {
  const AddressLayout::Slot& s = layout_.slots[slot];
  const std::uint64_t words = s.mapping_bytes / 4;
  if (words == 0) return {};
  if (!is_input(slot)) {
    buffer->poison_key = key;
    KP_CUDA_TRY(kernels_->run("poison", words, buffer->at, key, words));
    return {};
  }
  if (!slack) return {};
  buffer->poison_key = key;
  const std::uint64_t before = (s.address - s.mapping) / 4;
  const std::uint64_t after = (s.address - s.mapping + s.bytes + 3) / 4;
  if (before > 0) KP_CUDA_TRY(kernels_->run("poison", before, buffer->at, key, before));
  if (after < words) {
    KP_CUDA_TRY(kernels_->run("poison_range", words - after, buffer->at, key, after, words));
  }
  return {};
}

Result<void> JudgeCase::poison(const std::vector<std::pair<int, std::uint64_t>>& keys, bool slack) {
  std::set<const Buffer*> done;
  for (const auto& [index, key] : keys) {
    Set& set = set_at(index);
    for (std::size_t i = 0; i < layout_.slots.size(); ++i) {
      if (!done.insert(set.slots[i].get()).second) continue;
      KP_TRY(poison_buffer(set.slots[i].get(), i, key, slack));
    }
  }
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return {};
}

}  // namespace kernelpro

#endif
