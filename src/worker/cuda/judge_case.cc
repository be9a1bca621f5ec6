// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/judge_case.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kernelpro {

namespace {

constexpr std::uint64_t kWindow = 4096;  // elements that `window` gives at most

std::vector<std::uint64_t> sizes_of(const std::vector<JudgeTensor>& tensors, bool reference) {
  std::vector<std::uint64_t> sizes;
  for (const JudgeTensor& t : tensors) {
    sizes.push_back(reference && t.output ? t.expected_bytes() : t.bytes);
  }
  return sizes;
}

// Inverse of ordered() in judge.cu.
double from_ordered(std::uint64_t bits) {
  bits = bits >> 63 ? bits & ~(1ull << 63) : ~bits;
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

Result<JudgeCase> JudgeCase::open(const CudaDriver& cu, const CudaContext& context,
                                  TrustedKernels& kernels, std::vector<JudgeTensor> tensors,
                                  std::uint64_t workspace, int sets) {
  Result<std::uint64_t> granularity = allocation_granularity(cu, context.device());
  if (!granularity) return tl::unexpected<Error>(granularity.error());
  JudgeCase judge;
  judge.cu_ = &cu;
  judge.kernels_ = &kernels;
  judge.device_ = context.device();
  judge.layout_ = make_layout(sizes_of(tensors, false), workspace, *granularity, kCandidateBase);
  judge.reference_layout_ = make_layout(sizes_of(tensors, true), 0, *granularity, kReferenceBase);
  judge.tensors_ = std::move(tensors);
  judge.workspace_ = workspace;

  const std::uint64_t scratch_bytes = *granularity;
  std::uint64_t own_bytes = scratch_bytes;
  for (const AddressLayout* layout : {&judge.layout_, &judge.reference_layout_}) {
    for (const auto& slot : layout->slots) {
      own_bytes += static_cast<std::uint64_t>(sets) * slot.mapping_bytes;
    }
  }
  std::size_t free_bytes = 0, total = 0;
  KP_CUDA_TRY(cu.MemGetInfo(&free_bytes, &total));
  if (own_bytes > free_bytes) {
    return fail(ErrorKind::kBadInput,
                "this case needs " + std::to_string(own_bytes >> 20) + " MiB of GPU memory, " +
                    std::to_string(free_bytes >> 20) + " MiB are free",
                "make the case smaller, or end what else uses the GPU");
  }
  Result<AddressRange> own = AddressRange::reserve(cu, 0, own_bytes);
  if (!own) return tl::unexpected<Error>(own.error());
  judge.own_ = std::move(*own);
  judge.own_next_ = judge.own_.base();
  for (int s = 0; s < sets; ++s) {
    Set set;
    for (std::size_t i = 0; i < judge.layout_.slots.size(); ++i) {
      Result<PhysicalMemory> memory =
          PhysicalMemory::create(cu, judge.device_, judge.layout_.slots[i].mapping_bytes);
      if (!memory) return tl::unexpected<Error>(memory.error());
      set.memory.push_back(std::move(*memory));
    }
    for (std::size_t i = 0; i < judge.tensors_.size(); ++i) {
      PhysicalMemory memory;
      if (judge.tensors_[i].output) {
        Result<PhysicalMemory> made = PhysicalMemory::create(
            cu, judge.device_, judge.reference_layout_.slots[i].mapping_bytes);
        if (!made) return tl::unexpected<Error>(made.error());
        memory = std::move(*made);
      }
      set.expected.push_back(std::move(memory));
    }
    set.rms.assign(judge.tensors_.size(), 0);
    KP_TRY(judge.map_own(&set));
    judge.sets_.push_back(std::move(set));
  }
  Result<PhysicalMemory> scratch = PhysicalMemory::create(cu, judge.device_, scratch_bytes);
  if (!scratch) return tl::unexpected<Error>(scratch.error());
  judge.scratch_memory_ = std::move(*scratch);
  judge.scratch_ = judge.own_next_;
  KP_TRY(
      judge.own_.map(judge.device_, judge.scratch_, scratch_bytes, judge.scratch_memory_.handle()));
  return judge;
}

Result<void> JudgeCase::map_own(Set* set) {
  const auto map = [&](const PhysicalMemory& memory,
                       std::vector<std::uint64_t>* at) -> Result<void> {
    at->push_back(own_next_);
    if (memory.bytes() == 0) return {};
    KP_TRY(own_.map(device_, own_next_, memory.bytes(), memory.handle()));
    own_next_ += memory.bytes();
    return {};
  };
  for (const PhysicalMemory& memory : set->memory) KP_TRY(map(memory, &set->at));
  for (const PhysicalMemory& memory : set->expected) KP_TRY(map(memory, &set->expected_at));
  return {};
}

std::uint64_t JudgeCase::data_at(const Set& set, std::size_t slot) const {
  const AddressLayout::Slot& s = layout_.slots[slot];
  return set.at[slot] + (s.address - s.mapping);
}

std::uint64_t JudgeCase::expected_data_at(const Set& set, std::size_t tensor) const {
  const AddressLayout::Slot& s = reference_layout_.slots[tensor];
  return set.expected_at[tensor] + (s.address - s.mapping);
}

Result<std::vector<Fd>> JudgeCase::share(int set) const {
  std::vector<Fd> fds;
  for (const PhysicalMemory& memory : sets_[static_cast<std::size_t>(set)].memory) {
    Result<Fd> fd = memory.share();
    if (!fd) return tl::unexpected<Error>(fd.error());
    fds.push_back(std::move(*fd));
  }
  return fds;
}

Result<void> JudgeCase::draw(int index, std::uint64_t seed) {
  Set& set = sets_[static_cast<std::size_t>(index)];
  set.seed = seed;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (t.output) continue;
    const std::uint64_t key = kp::draw_key(seed, static_cast<unsigned>(i));
    const auto count = static_cast<std::uint64_t>(t.elements);
    KP_CUDA_TRY(kernels_->run("draw", count, data_at(set, i), t.draw, key, count));
  }
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return {};
}

Result<std::uint64_t> JudgeCase::run_reference(int index, const std::string& cubin,
                                               const LaunchPlan& plan, bool again) {
  Set& set = sets_[static_cast<std::size_t>(index)];
  // Cases share these addresses, one after the other.
  Result<AddressRange> range =
      AddressRange::reserve(*cu_, reference_layout_.base, reference_layout_.reserve_bytes);
  if (!range) return tl::unexpected<Error>(range.error());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const AddressLayout::Slot& slot = reference_layout_.slots[i];
    const PhysicalMemory& memory = tensors_[i].output ? set.expected[i] : set.memory[i];
    KP_TRY(range->map(device_, slot.mapping, slot.mapping_bytes, memory.handle()));
  }
  Result<ReplayGraph> graph = ReplayGraph::build(*cu_, cubin, plan, reference_layout_);
  if (!graph) return tl::unexpected<Error>(graph.error());
  const auto run = [&](std::uint64_t key) -> Result<void> {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].output) continue;
      const std::uint64_t words = set.expected[i].bytes() / 4;
      KP_CUDA_TRY(kernels_->run("poison", words, set.expected_at[i], key, words));
    }
    KP_CUDA_TRY(cu_->CtxSynchronize());
    const CUresult result = graph->launch(nullptr);
    const CUresult done = result == CUDA_SUCCESS ? cu_->CtxSynchronize() : result;
    if (done != CUDA_SUCCESS) {
      return fail(ErrorKind::kTask, "the reference crashed: " + cuda_error_text(done),
                  "run reference.cu under compute-sanitizer and mend it");
    }
    return {};
  };
  KP_TRY(run(0x5eed));
  if (!again) return 0;
  std::uint64_t differing = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].output) continue;
    CUdeviceptr copy = 0;
    const std::uint64_t bytes = tensors_[i].expected_bytes() / 4 * 4;
    if (bytes == 0) continue;
    KP_CUDA_TRY(cu_->MemAlloc(&copy, bytes));
    KP_CUDA_TRY(cu_->MemcpyDtoDAsync(copy, expected_data_at(set, i), bytes, nullptr));
    KP_TRY(run(0xbeef + i));
    KP_TRY(reset_counter());
    KP_CUDA_TRY(kernels_->run("count_differences", bytes / 4, copy, expected_data_at(set, i),
                              bytes / 4, scratch_));
    std::uint64_t changed = 0, where = 0;
    KP_TRY(run_counter(&changed, &where));
    differing += changed;
    cu_->MemFree(copy);
  }
  return differing;
}

Result<std::vector<ExpectedSummary>> JudgeCase::summarize(int index) {
  Set& set = sets_[static_cast<std::size_t>(index)];
  std::vector<ExpectedSummary> result;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (!t.output) continue;
    struct {
      double squares = 0;
      std::uint64_t low = ~0ull, high = 0, not_finite = 0;
    } raw;
    KP_CUDA_TRY(cu_->MemcpyHtoD(scratch_, &raw, sizeof raw));
    const auto count = static_cast<std::uint64_t>(t.elements);
    KP_CUDA_TRY(kernels_->run("summarize", count, expected_data_at(set, i),
                              static_cast<int>(t.dtype), is_floating(t.dtype) ? 1 : 0, count,
                              scratch_));
    KP_CUDA_TRY(cu_->MemcpyDtoH(&raw, scratch_, sizeof raw));
    ExpectedSummary s;
    const double finite = static_cast<double>(count - raw.not_finite);
    s.rms = finite > 0 ? std::sqrt(raw.squares / finite) : 0;
    s.low = finite > 0 ? from_ordered(raw.low) : 0;
    s.high = finite > 0 ? from_ordered(raw.high) : 0;
    s.not_finite = raw.not_finite;
    set.rms[i] = s.rms;
    result.push_back(s);
  }
  return result;
}

Result<void> JudgeCase::poison(int index, std::uint64_t key) {
  Set& set = sets_[static_cast<std::size_t>(index)];
  set.poison_key = key;
  for (std::size_t i = 0; i < layout_.slots.size(); ++i) {
    const AddressLayout::Slot& slot = layout_.slots[i];
    const bool input = i < tensors_.size() && !tensors_[i].output;
    const std::uint64_t before = (slot.address - slot.mapping) / 4;
    const std::uint64_t words = input ? before : slot.mapping_bytes / 4;
    if (words == 0) continue;
    KP_CUDA_TRY(kernels_->run("poison", words, set.at[i], key, words));
  }
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return {};
}

Result<void> JudgeCase::reset_counter() {
  const std::uint64_t zero[2] = {0, ~0ull};
  KP_CUDA_TRY(cu_->MemcpyHtoD(scratch_, zero, sizeof zero));
  return {};
}

Result<void> JudgeCase::run_counter(std::uint64_t* changed, std::uint64_t* where) {
  std::uint64_t counts[2];
  KP_CUDA_TRY(cu_->MemcpyDtoH(counts, scratch_, sizeof counts));
  *changed = counts[0];
  *where = counts[1];
  return {};
}

Result<std::vector<OutputComparison>> JudgeCase::compare(int index) {
  const Set& set = sets_[static_cast<std::size_t>(index)];
  std::vector<OutputComparison> results;
  std::uint64_t at = scratch_;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (!t.output) continue;
    const OutputComparison zero;
    KP_CUDA_TRY(cu_->MemcpyHtoD(at, &zero, sizeof zero));
    const auto count = static_cast<std::uint64_t>(t.elements);
    const AddressLayout::Slot& slot = layout_.slots[i];
    KP_CUDA_TRY(kernels_->run("compare", count, data_at(set, i), expected_data_at(set, i),
                              static_cast<int>(t.dtype), is_floating(t.dtype) ? 1 : 0, set.rms[i],
                              t.tolerance, set.poison_key, slot.address - slot.mapping, count, at));
    at += sizeof zero;
    results.emplace_back();
  }
  if (!results.empty()) {
    KP_CUDA_TRY(cu_->MemcpyDtoH(results.data(), scratch_, results.size() * sizeof results[0]));
  }
  return results;
}

Result<void> JudgeCase::slack_intrusions(const Set& set, std::size_t i,
                                         std::vector<Intrusion>* out) {
  const AddressLayout::Slot& slot = layout_.slots[i];
  const std::uint64_t start = slot.address - slot.mapping;
  const bool input = i < tensors_.size() && !tensors_[i].output;
  const std::uint64_t end = (start + slot.bytes + 3) / 4;  // whole words behind the tensor
  const auto check = [&](std::uint64_t from, std::uint64_t to, const char* what) -> Result<void> {
    if (from >= to) return {};
    KP_TRY(reset_counter());
    KP_CUDA_TRY(kernels_->run("check_poison", to - from, set.at[i], set.poison_key, from, to,
                              scratch_, scratch_ + 8));
    std::uint64_t changed = 0, where = 0;
    KP_TRY(run_counter(&changed, &where));
    if (changed == 0) return {};
    const std::uint64_t byte = where * 4;
    out->push_back({static_cast<int>(i), what, changed,
                    what[0] == 'b' ? start - byte : byte - (start + slot.bytes)});
    return {};
  };
  KP_TRY(check(0, start / 4, "before"));
  if (!input) KP_TRY(check(end, slot.mapping_bytes / 4, "after"));
  return {};
}

Result<std::vector<Intrusion>> JudgeCase::intrusions(int index) {
  const Set& set = sets_[static_cast<std::size_t>(index)];
  std::vector<Intrusion> found;
  for (std::size_t i = 0; i < layout_.slots.size(); ++i) {
    KP_TRY(slack_intrusions(set, i, &found));
    if (i >= tensors_.size() || tensors_[i].output) continue;
    KP_TRY(reset_counter());
    const auto count = static_cast<std::uint64_t>(tensors_[i].elements);
    KP_CUDA_TRY(kernels_->run("check_inputs", count, data_at(set, i), tensors_[i].draw,
                              kp::draw_key(set.seed, static_cast<unsigned>(i)), count, scratch_,
                              scratch_ + 8));
    std::uint64_t changed = 0, where = 0;
    KP_TRY(run_counter(&changed, &where));
    if (changed != 0) found.push_back({static_cast<int>(i), "input", changed, where});
  }
  return found;
}

Result<void> JudgeCase::window(int index, int output, std::uint64_t first, std::uint64_t count,
                               std::vector<unsigned char>* bad, std::vector<double>* got,
                               std::vector<double>* expected) {
  const Set& set = sets_[static_cast<std::size_t>(index)];
  const auto i = static_cast<std::size_t>(output);
  const JudgeTensor& t = tensors_[i];
  const auto elements = static_cast<std::uint64_t>(t.elements);
  first = std::min(first, elements);
  count = std::min({count, elements - first, kWindow});
  bad->resize(count);
  got->resize(count);
  expected->assign(count, 0);
  if (count == 0) return {};
  const std::uint64_t got_at = scratch_ + kWindow;
  KP_CUDA_TRY(kernels_->run("mark_bad", count, data_at(set, i), expected_data_at(set, i),
                            static_cast<int>(t.dtype), is_floating(t.dtype) ? 1 : 0, set.rms[i],
                            t.tolerance, first, count, scratch_, got_at));
  KP_CUDA_TRY(cu_->MemcpyDtoH(bad->data(), scratch_, count));
  KP_CUDA_TRY(cu_->MemcpyDtoH(got->data(), got_at, count * sizeof(double)));
  const std::uint64_t element =
      is_floating(t.dtype) ? 8 : static_cast<std::uint64_t>(dtype_bytes(t.dtype));
  std::string raw(count * element, '\0');
  KP_CUDA_TRY(cu_->MemcpyDtoH(raw.data(), expected_data_at(set, i) + first * element, raw.size()));
  for (std::uint64_t k = 0; k < count; ++k) {
    if (is_floating(t.dtype)) {
      std::memcpy(&(*expected)[k], raw.data() + k * 8, 8);
    } else {
      (*expected)[k] = element_as_double(t.dtype, raw.data(), static_cast<std::int64_t>(k));
    }
  }
  return {};
}

Result<std::string> JudgeCase::fetch(int index, int slot, bool expected) {
  const Set& set = sets_[static_cast<std::size_t>(index)];
  const auto i = static_cast<std::size_t>(slot);
  std::string bytes(expected ? tensors_[i].expected_bytes() : tensors_[i].bytes, '\0');
  KP_CUDA_TRY(cu_->MemcpyDtoH(bytes.data(), expected ? expected_data_at(set, i) : data_at(set, i),
                              bytes.size()));
  return bytes;
}

}  // namespace kernelpro

#endif
