// SPDX-License-Identifier: Apache-2.0
// JudgeCase: what probes need (measure/judge/probe_shapes.h).
#include "measure/worker/cuda/judge_case.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cmath>

namespace kernelpro {

namespace {

// Mirrors struct Survey of judge.cu.
struct RawSurvey {
  std::uint64_t low_complement = 0, high = 0, descents = 0, fractions = 0;
};

// Mirrors struct Deviation of judge.cu.
struct RawDeviation {
  double errors = 0, sizes = 0, products = 0, relative = 0;
  std::uint64_t changed = 0, lost = 0, count = 0;
  double worst = 0, relative_worst = 0;
};

// Mirrors struct MeanAxis of judge.cu.
struct RawMeanAxis {
  std::uint64_t outer = 1, length = 1, inner = 1;
  int across = 0;
};

Deviation summary(const RawDeviation& raw) {
  Deviation found;
  found.norm = raw.sizes > 0 ? std::sqrt(raw.errors / raw.sizes) : 0;
  found.common = raw.sizes > 0 ? raw.products / raw.sizes : 0;
  found.worst = raw.worst;
  const auto count = static_cast<double>(std::max<std::uint64_t>(raw.count, 1));
  found.relative = std::sqrt(raw.relative / count);
  found.relative_worst = raw.relative_worst;
  found.changed = static_cast<double>(raw.changed) / count;
  found.lost = static_cast<double>(raw.lost) / count;
  return found;
}

RawMeanAxis raw_axis(const MeanAxis& axis) {
  return {static_cast<std::uint64_t>(axis.outer), static_cast<std::uint64_t>(axis.length),
          static_cast<std::uint64_t>(axis.inner), axis.across ? 1 : 0};
}

// How the groups of an axis are divided among threads.
struct MeanWork {
  bool apart = false;       // neighbouring lanes have groups of their own
  std::uint64_t parts = 1;  // of each group
  std::uint64_t sums = 0;   // where those of several parts are
  std::uint64_t lanes() const { return apart ? 1 : 32; }
};

constexpr std::uint64_t kThreads = 2048;   // that a multiprocessor holds
constexpr std::uint64_t kFewestEach = 16;  // elements of a group that are worth a thread
constexpr std::int64_t kRun = 32;          // neighbouring elements that fill a warp's access

MeanWork mean_work(const MeanAxis& axis, int multiprocessors) {
  MeanWork work;
  work.apart = (axis.inner >= kRun) != axis.across;  // so that lanes' elements lie side by side
  const std::uint64_t threads = static_cast<std::uint64_t>(axis.groups()) * work.lanes();
  const std::uint64_t most =
      static_cast<std::uint64_t>(axis.averaged()) / (kFewestEach * work.lanes());
  work.parts =
      std::clamp<std::uint64_t>(static_cast<std::uint64_t>(multiprocessors) * kThreads / threads, 1,
                                std::max<std::uint64_t>(most, 1));
  return work;
}

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

Result<std::vector<Deviation>> JudgeCase::deviations(
    int index, const std::vector<std::vector<std::int64_t>>& shapes) {
  const Set& set = set_at(index);
  KP_TRY(zero_results(sizeof(RawDeviation) * tensors_.size()));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (!t.output || !is_floating(t.dtype) || !t.wide) continue;
    const auto count = static_cast<std::uint64_t>(t.elements);
    const double scale = std::max(set.typical ? set.scale[i] : set.rms[i], set.least[i]);
    KP_CUDA_TRY(kernels_->run("deviate", count, data_at(set, i), expected_at(set, i),
                              static_cast<int>(t.dtype), set.rms[i], scale, kChanged, kCountsFrom,
                              kLostFrom, count, scratch_ + sizeof(RawDeviation) * i));
  }
  KP_ASSIGN(const std::vector<RawDeviation> raw, results<RawDeviation>(tensors_.size()));
  std::vector<Deviation> all;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (!t.output) continue;
    Deviation& found = all.emplace_back(summary(raw[i]));
    const bool known = t.dtype == DType::kFp32 && t.wide && all.size() <= shapes.size();
    if (!known || raw[i].count == 0) continue;
    KP_TRY(add_means(set, i, mean_axes(shapes[all.size() - 1]), &found));
  }
  return all;
}

Result<void> JudgeCase::add_means(const Set& set, std::size_t tensor,
                                  const std::vector<MeanAxis>& axes, Deviation* found) {
  const JudgeTensor& t = tensors_[tensor];
  const auto fits = [&](const MeanAxis& axis) {
    return axis.groups() * axis.averaged() == t.elements;
  };
  if (axes.empty() || !std::all_of(axes.begin(), axes.end(), fits)) return {};
  // The squares of each axis, then the sums of those whose groups are too few to fill the GPU.
  std::vector<MeanWork> works;
  std::uint64_t used = axes.size();
  for (const MeanAxis& axis : axes) {
    MeanWork work = mean_work(axis, kernels_->multiprocessors());
    const auto groups = static_cast<std::uint64_t>(axis.groups());
    if (work.parts > 1 && sizeof(double) * (used + groups) <= scratch_bytes_) {
      work.sums = scratch_ + sizeof(double) * used;
      used += groups;
    } else {
      work.parts = 1;
    }
    works.push_back(work);
  }
  KP_TRY(zero_results(sizeof(double) * used));
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const MeanWork& work = works[k];
    const auto groups = static_cast<std::uint64_t>(axes[k].groups());
    const std::uint64_t squares = scratch_ + sizeof(double) * k;
    KP_CUDA_TRY(kernels_->run("mean_errors", groups * work.parts * work.lanes(),
                              data_at(set, tensor), expected_at(set, tensor),
                              static_cast<int>(t.dtype), found->common, raw_axis(axes[k]),
                              work.parts, work.apart ? 1 : 0, work.sums, squares));
    if (work.parts > 1)
      KP_CUDA_TRY(kernels_->run("add_squares", groups, work.sums, groups, squares));
  }
  KP_ASSIGN(const std::vector<double> squares, results<double>(axes.size()));
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const double mean = std::sqrt(squares[k] / static_cast<double>(axes[k].groups())) /
                        static_cast<double>(axes[k].averaged());
    found->means.push_back(set.rms[tensor] > 0 ? mean / set.rms[tensor] : 0);
  }
  return {};
}

}  // namespace kernelpro

#endif
