// SPDX-License-Identifier: Apache-2.0
// JudgeCase: what probes need (measure/judge/probe_shapes.h).
#include "measure/worker/cuda/judge_case.h"

#if KERNELPRO_HAVE_CUDA

#include <cmath>

namespace kernelpro {

namespace {

// Mirrors struct Survey of judge.cu.
struct RawSurvey {
  std::uint64_t low_complement = 0, high = 0, descents = 0, fractions = 0;
};

// Mirrors struct Deviation of judge.cu.
struct RawDeviation {
  double errors = 0, sizes = 0, worst = 0;
};

}  // namespace

Result<Surveyed> JudgeCase::survey(const Set& set, std::size_t tensor) {
  const JudgeTensor& t = tensors_[tensor];
  const auto count = static_cast<std::uint64_t>(t.elements);
  KP_TRY(zero_results(sizeof(RawSurvey)));
  KP_CUDA_TRY(kernels_->run("survey", count, data_at(set, tensor), static_cast<int>(t.dtype), count,
                            scratch_));
  KP_ASSIGN(const std::vector<RawSurvey> raw, results<RawSurvey>(1));
  Surveyed surveyed;
  if (raw[0].high != 0) {
    surveyed.low = from_ordered(~raw[0].low_complement);
    surveyed.high = from_ordered(raw[0].high);
  }
  surveyed.rises = raw[0].descents == 0;
  surveyed.whole = raw[0].fractions == 0;
  return surveyed;
}

Result<bool> JudgeCase::reshape(int index, std::uint64_t seed,
                                const std::vector<kp::ShapeSpec>& specs) {
  Set& set = set_at(index);
  bool changed = false;
  set.specs.clear();  // it no longer holds the drawn values
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    kp::ShapeSpec spec = specs[i];
    if (t.output || spec.shape == kp::kUnchanged || t.elements == 0) continue;
    spec.dtype = static_cast<int>(t.dtype);
    if (wants_survey(spec)) {
      KP_ASSIGN(const Surveyed surveyed, survey(set, i));
      if (!fit(surveyed, &spec)) continue;
    }
    const auto count = static_cast<std::uint64_t>(t.elements);
    const std::uint64_t key = kp::shape_key(seed, static_cast<unsigned>(i));
    KP_CUDA_TRY(kernels_->run("reshape", count, data_at(set, i), spec, key, count));
    changed = true;
  }
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return changed;
}

Result<void> JudgeCase::narrow(int index) {
  const Set& set = set_at(index);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (!t.output || !is_floating(t.dtype) || !t.wide) continue;
    const auto count = static_cast<std::uint64_t>(t.elements);
    KP_CUDA_TRY(kernels_->run("narrow", count, expected_at(set, i), data_at(set, i),
                              static_cast<int>(t.dtype), count));
  }
  KP_CUDA_TRY(cu_->CtxSynchronize());
  return {};
}

Result<std::vector<Deviation>> JudgeCase::deviations(int index) {
  const Set& set = set_at(index);
  KP_TRY(zero_results(sizeof(RawDeviation) * tensors_.size()));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (!t.output || !is_floating(t.dtype) || !t.wide) continue;
    const auto count = static_cast<std::uint64_t>(t.elements);
    KP_CUDA_TRY(kernels_->run("deviate", count, data_at(set, i), expected_at(set, i),
                              static_cast<int>(t.dtype), set.rms[i], count,
                              scratch_ + sizeof(RawDeviation) * i));
  }
  KP_ASSIGN(const std::vector<RawDeviation> raw, results<RawDeviation>(tensors_.size()));
  std::vector<Deviation> all;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].output) continue;
    const RawDeviation& r = raw[i];
    all.push_back({r.sizes > 0 ? std::sqrt(r.errors / r.sizes) : 0, r.worst});
  }
  return all;
}

}  // namespace kernelpro

#endif
