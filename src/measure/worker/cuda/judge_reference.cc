// SPDX-License-Identifier: Apache-2.0
// JudgeCase: the task's own reference, seals, and the input changes that floors need.
#include "measure/worker/cuda/judge_case.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cmath>

namespace kernelpro {

namespace {

// Mirrors struct Summary of judge.cu.
struct RawSummary {
  double squares = 0;
  std::uint64_t low_complement = 0, high = 0, not_finite = 0;
};

}  // namespace

Result<void> JudgeCase::zero_results(std::uint64_t bytes) {
  if (bytes > scratch_bytes_) return fail(ErrorKind::kInternal, "too many results", "report this");
  KP_CUDA_TRY(cu_->MemsetD8Async(scratch_, 0, bytes, nullptr));
  return {};
}

Result<void> JudgeCase::seal_data(std::uint64_t at, std::uint64_t bytes, std::uint64_t result) {
  KP_CUDA_TRY(kernels_->run("seal", bytes / 16, at, bytes, seal_key_, result));
  return {};
}

Result<bool> JudgeCase::run_reference(int index, const std::string& cubin, const LaunchPlan& plan,
                                      bool again) {
  Set& set = set_at(index);
  // Cases use these addresses one after the other.
  KP_ASSIGN(AddressRange range,
            AddressRange::reserve(*cu_, reference_layout_.base, reference_layout_.reserve_bytes));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const AddressLayout::Slot& slot = reference_layout_.slots[i];
    const PhysicalMemory& memory =
        tensors_[i].output ? set.expected[i]->memory : set.slots[i]->memory;
    if (memory.bytes() == 0) continue;
    KP_TRY(range.map(device_, slot.mapping, slot.mapping_bytes, memory.handle()));
  }
  KP_ASSIGN(ReplayGraph graph, ReplayGraph::build(*cu_, cubin, plan, reference_layout_));
  const auto run = [&](std::uint64_t key) -> Result<void> {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].output) continue;
      const std::uint64_t words = set.expected[i]->memory.bytes() / 4;
      KP_CUDA_TRY(kernels_->run("poison", words, set.expected[i]->at, key, words));
    }
    KP_CUDA_TRY(cu_->CtxSynchronize());
    const CUresult result = graph.launch(nullptr);
    const CUresult done = result == CUDA_SUCCESS ? cu_->CtxSynchronize() : result;
    if (done != CUDA_SUCCESS) {
      return fail(ErrorKind::kTask, "the reference crashed: " + cuda_error_text(done),
                  "run reference.cu under compute-sanitizer and fix it");
    }
    return {};
  };
  KP_TRY(run(0x5eed));
  if (!again) return true;
  KP_ASSIGN(const std::vector<std::uint64_t> first, expected_seals(set));
  KP_TRY(run(0xbeef));
  KP_ASSIGN(const std::vector<std::uint64_t> second, expected_seals(set));
  return first == second;
}

Result<std::vector<std::uint64_t>> JudgeCase::expected_seals(const Set& set) {
  KP_TRY(zero_results(8 * tensors_.size()));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].output) continue;
    KP_TRY(seal_data(expected_at(set, i), tensors_[i].expected_bytes(), scratch_ + 8 * i));
  }
  return results<std::uint64_t>(tensors_.size());
}

Result<std::vector<std::uint64_t>> JudgeCase::input_seals(const std::vector<int>& sets) {
  const std::size_t count = tensors_.size();
  KP_TRY(zero_results(8 * count * sets.size()));
  for (std::size_t k = 0; k < sets.size(); ++k) {
    const Set& set = set_at(sets[k]);
    for (std::size_t i = 0; i < count; ++i) {
      if (tensors_[i].output) continue;
      KP_TRY(seal_data(data_at(set, i), tensors_[i].bytes, scratch_ + 8 * (k * count + i)));
    }
  }
  return results<std::uint64_t>(count * sets.size());
}

// The scale for the errors of small results.
Result<double> JudgeCase::scale_of_expected(const Set& set, std::size_t tensor) {
  const JudgeTensor& t = tensors_[tensor];
  const auto count = static_cast<std::uint64_t>(t.elements);
  const std::uint64_t samples =
      std::min({count, static_cast<std::uint64_t>(kScaleSample), scratch_bytes_ / sizeof(double)});
  if (samples == 0 || !is_floating(t.dtype)) return set.rms[tensor];
  KP_CUDA_TRY(kernels_->run("sample_sizes", samples, expected_at(set, tensor),
                            static_cast<int>(t.dtype), t.wide ? 1 : 0, samples, count, scratch_));
  KP_ASSIGN(std::vector<double> sizes, results<double>(samples));
  return scale_of(set.rms[tensor], std::move(sizes), t.dtype);
}

Result<std::vector<ExpectedSummary>> JudgeCase::seal(int index, bool typical) {
  Set& set = set_at(index);
  set.known.clear();
  set.typical = typical;
  std::fill(set.least.begin(), set.least.end(), 0);
  KP_ASSIGN(set.seals, input_seals({index}));
  KP_ASSIGN(const std::vector<std::uint64_t> seals, expected_seals(set));
  KP_TRY(zero_results(sizeof(RawSummary) * tensors_.size()));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (!t.output) continue;
    const auto count = static_cast<std::uint64_t>(t.elements);
    KP_CUDA_TRY(kernels_->run("summarize", count, expected_at(set, i), static_cast<int>(t.dtype),
                              t.wide && is_floating(t.dtype) ? 1 : 0, count,
                              scratch_ + sizeof(RawSummary) * i));
  }
  KP_ASSIGN(const std::vector<RawSummary> raw, results<RawSummary>(tensors_.size()));
  std::vector<ExpectedSummary> result;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].output) continue;
    const RawSummary& r = raw[i];
    ExpectedSummary s;
    const double finite =
        static_cast<double>(tensors_[i].elements) - static_cast<double>(r.not_finite);
    s.rms = finite > 0 ? std::sqrt(r.squares / finite) : 0;
    s.low = finite > 0 ? from_ordered(~r.low_complement) : 0;
    s.high = finite > 0 ? from_ordered(r.high) : 0;
    s.not_finite = r.not_finite;
    s.seal = seals[i];
    set.rms[i] = s.rms;
    result.push_back(s);
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].output) continue;
    KP_ASSIGN(set.scale[i], scale_of_expected(set, i));
  }
  return result;
}

Result<void> JudgeCase::vary(int index, const kp::Key& key) {
  const Set& set = set_at(index);
  const auto chosen = [&](std::size_t i) {
    return tensors_[i].role == Role::kParameter && is_floating(tensors_[i].dtype);
  };
  KP_TRY(zero_results(sizeof(RawSummary) * tensors_.size()));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!chosen(i)) continue;
    const auto count = static_cast<std::uint64_t>(tensors_[i].elements);
    KP_CUDA_TRY(kernels_->run("summarize", count, data_at(set, i),
                              static_cast<int>(tensors_[i].dtype), 0, count,
                              scratch_ + sizeof(RawSummary) * i));
  }
  KP_ASSIGN(const std::vector<RawSummary> raw, results<RawSummary>(tensors_.size()));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    // Constant (ones, zeros): whether a kernel may assume that is left to the probes.
    if (!chosen(i) || raw[i].high == ~raw[i].low_complement) continue;
    const auto count = static_cast<std::uint64_t>(tensors_[i].elements);
    KP_CUDA_TRY(kernels_->run("vary", count, data_at(set, i), static_cast<int>(tensors_[i].dtype),
                              kp::subkey(key, kp::kVaryStreams + i), count));
  }
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return {};
}

Result<void> JudgeCase::lean(int index, const kp::Key& key) {
  Set& set = set_at(index);
  set.specs.clear();  // it no longer holds the drawn values
  const std::uint64_t digits = kp::subkey(key, kp::kLeanStream);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (t.role != Role::kInput || t.dtype != DType::kFp32) continue;
    const auto count = static_cast<std::uint64_t>(t.elements);
    KP_CUDA_TRY(kernels_->run("lean", count, data_at(set, i), digits, count));
  }
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return {};
}

void JudgeCase::set_tolerances(const std::vector<double>& tolerances) {
  for (std::size_t i = 0; i < std::min(tolerances.size(), tensors_.size()); ++i) {
    tensors_[i].rule.tolerance = tolerances[i];
  }
  for (Set& set : sets_) set.known.clear();
}

Result<std::vector<int>> JudgeCase::broken_seals() {
  std::vector<int> all, broken;
  for (int s = 0; s < sets(); ++s) all.push_back(s);
  KP_ASSIGN(const std::vector<std::uint64_t> now, input_seals(all));
  const std::size_t count = tensors_.size();
  for (const int s : all) {
    const auto* mine = &now[static_cast<std::size_t>(s) * count];
    if (!std::equal(mine, mine + count, set_at(s).seals.begin())) broken.push_back(s);
  }
  return broken;
}

Result<void> JudgeCase::disturb(int index, int tensor, std::uint64_t first, std::uint64_t other,
                                std::uint64_t count, float large) {
  const Set& set = set_at(index);
  const auto i = static_cast<std::size_t>(tensor);
  const JudgeTensor& t = tensors_[i];
  const auto elements = static_cast<std::uint64_t>(t.elements);
  const auto size = static_cast<std::uint64_t>(dtype_bytes(t.dtype));
  if (first >= elements || other >= elements) return fail(ErrorKind::kInternal, "no element", "");
  count = std::min({count, elements - first, elements - other});
  disturbed_at_ = data_at(set, i) + first * size;
  disturbed_bytes_.assign(count * size, '\0');
  KP_CUDA_TRY(cu_->MemcpyDtoH(disturbed_bytes_.data(), disturbed_at_, disturbed_bytes_.size()));
  const int mode = is_floating(t.dtype) && large != 0 ? 0 : 1;
  KP_CUDA_TRY(kernels_->run("disturb", count, data_at(set, i), static_cast<int>(t.dtype), mode,
                            large, first, other, count));
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return {};
}

Result<void> JudgeCase::restore() {
  if (disturbed_bytes_.empty()) return {};
  KP_CUDA_TRY(cu_->MemcpyHtoD(disturbed_at_, disturbed_bytes_.data(), disturbed_bytes_.size()));
  disturbed_bytes_.clear();
  return {};
}

}  // namespace kernelpro

#endif
