// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/precision.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "measure/judge/probe_rows.h"
#include "measure/judge/probe_shapes.h"

namespace kernelpro {

namespace {

constexpr double kSumOfNudge = 4096;     // terms whose plain sum errs as much as nudges allow
constexpr double kTail = 32;             // of elements over their root mean square, at most
constexpr double kFewTail = 4;           // ... and for this few elements
constexpr double kChance = 3;            // standard deviations of a norm of few elements
constexpr double kUsual = 1e-4;          // the contract's tolerance of fp32 (core/task/task.h)
constexpr double kSumUnit = 0x1p-25;     // of a sum's length, by its root
constexpr double kLongAxis = 4096;       // shorter sums err by less than kNormFloor
constexpr std::int64_t kFewChanged = 8;  // elements

double longest_axis(const std::vector<Shaped>& tensors) {
  double longest = 1;
  for (const Shaped& t : tensors) {
    for (const std::int64_t extent : t.shape) {
      longest = std::max(longest, static_cast<double>(extent));
    }
  }
  return longest;
}

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

// The norm of a few independent errors differs by chance.
double room_for_chance(std::int64_t elements) {
  return 1 + kChance / std::sqrt(2.0 * static_cast<double>(elements));
}

// Whether few elements decide a norm: of so many, the largest over their root mean square.
bool has_tail(std::int64_t elements, double largest, double rms) {
  const double even = std::sqrt(static_cast<double>(elements)) / 2;
  return largest > std::clamp(even, kFewTail, kTail) * rms;
}

std::string error_text(const NormError& error, const std::string& what, double got, double allowed,
                       const std::string& where) {
  return what + " of " + error.tensor + " are " + number(got, 3) + " of its norm " + where +
         " (plain fp32: at most " + number(allowed, 3) + "), case " + error.case_name;
}

void judge_dense(const NormError& error, const std::string& where, std::vector<Imprecision>* all) {
  const auto judge = [&](const std::string& what, double got, double allowed) {
    if (got <= allowed) return;
    const bool rejected = got > kCoarse * allowed && error.accounted;
    all->push_back({rejected ? Imprecision::Kind::kRejected : Imprecision::Kind::kCoarser,
                    error_text(error, what, got, allowed, where)});
  };
  const std::int64_t elements = elements_of(error.shape);
  double room = error.shape.empty() ? 1 : room_for_chance(elements);
  // An author who tolerates more does so for what the reference, not the inputs, may round.
  if (!error.accounted) room *= kUnaccountedRoom * std::max(1.0, error.tolerance / kUsual);
  const double half = error.dtype == DType::kFp32 ? 1 : kHalfRoom;
  if (error.nudged.norm > 0) {
    judge("the errors", error.got.norm, room * std::max(half * kNormFloor, error.nudged.norm));
  } else if (error.nudged.relative > 0) {
    judge("the errors, by each element's size,", error.got.relative,
          room * kRelativeRoom * std::max(half * kNormFloor, error.nudged.relative));
  }
  if (!error.linear || !error.accounted || half != 1 || error.nudged.norm <= 0) return;
  const std::vector<MeanAxis> axes = mean_axes(error.shape);
  for (std::size_t i = 0; i < std::min(error.got.means.size(), error.nudged.means.size()); ++i) {
    const double sums =
        kSumUnit * std::sqrt(std::max(1.0, error.length) / static_cast<double>(axes[i].averaged()));
    judge(
        "the means of errors along axes", error.got.means[i],
        room_for_chance(axes[i].groups()) * kMeansRoom * std::max(sums, error.nudged.means[i] / 2));
  }
}

void judge_sparse(const NormError& error, const std::string& where, std::vector<Imprecision>* all) {
  const bool dim = error.kind == DrawKind::kDimSums;  // whose sums are rounded all along
  const double nudged = with_sums(error.nudged, dim ? error.length : 0).norm;
  const double allowed = std::max(kNormFloor, (dim ? kDimRoom : kNormRoom) * nudged);
  if (error.got.norm > allowed) {
    all->push_back({Imprecision::Kind::kRejected,
                    "the products in " + error.tensor + " err by " + number(error.got.norm, 3) +
                        " of their norm " + where + " (allowed " + number(allowed, 3) + "), case " +
                        error.case_name});
  }
  if (error.got.worst <= std::max(kElementRoom, kElementNudged * error.nudged.worst)) return;
  all->push_back({Imprecision::Kind::kByNorm,
                  "single elements of " + error.tensor + " err by " + number(error.got.worst, 3) +
                      " of the output's scale " + where + " (case " + error.case_name + ")"});
}

void judge_lost(const NormError& error, const std::string& where, std::vector<Imprecision>* all) {
  const double least = kFewestLost / static_cast<double>(elements_of(error.shape));
  const double allowed = std::max(least, kLostShare) + kLostRoom * error.nudged.lost;
  if (error.got.lost < allowed) return;
  all->push_back({Imprecision::Kind::kLost,
                  "of " + number(100 * error.got.lost, 3) + " % of the elements of " +
                      error.tensor + " little is left " + where + " (plain fp32: " +
                      number(100 * error.nudged.lost, 3) + " %), case " + error.case_name});
}

}  // namespace

bool shows_norm(DrawKind kind) { return probe_row(kind).shows_norm; }

bool shows_lost(DrawKind kind) {
  return wants_nudged(kind) && !shows_products(kind) && !shows_norm(kind);
}

double plain_length(const Task& task, const Case& c, double reach, DrawKind kind) {
  return kind == DrawKind::kSparing ? 0 : plain_length(task, c, reach);
}

bool norms_apply(const Task& task) {
  return task.precision == Precision::kFp32 &&
         std::any_of(task.tensors.begin(), task.tensors.end(), [](const Tensor& t) {
           return t.role == Role::kOutput && is_floating(t.dtype);
         });
}

bool norms_account_for_all(const Task& task, const Case& c) {
  return task.module.has_value() || multiplies(task, c);
}

double sum_length(const Task& task, const Case& c) {
  double results = 1, most = 1;
  for (const Shaped& t : shaped_tensors(task, c)) {
    double& which = t.tensor->role == Role::kOutput ? results : most;
    which = std::max(which, static_cast<double>(t.elements));
  }
  return std::max(task_flops(task, c) / 2, most) / results;
}

double plain_length(const Task& task, const Case& c, double reach) {
  const double declared = sum_length(task, c);
  if (norms_account_for_all(task, c)) return declared;
  const double longest = longest_axis(shaped_tensors(task, c));
  return std::max(declared, wants_reach(task, c) ? std::min(longest, reach) : longest);
}

bool wants_reach(const Task& task, const Case& c) {
  return !norms_account_for_all(task, c) && longest_axis(shaped_tensors(task, c)) > kLongAxis;
}

std::vector<kp::ShapeSpec> few_shapes(const std::vector<Shaped>& tensors) {
  // Half of those that change change their sign, the others grow.
  std::vector<kp::ShapeSpec> specs = nudge_shapes(tensors, Precision::kFp32, false);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].shape == kp::kUnchanged) continue;
    specs[i].shape = kp::kFew;
    specs[i].factor = -4;
    specs[i].depth = 0;
    specs[i].period = static_cast<unsigned>(
        std::clamp<std::int64_t>(tensors[i].elements / kFewChanged, 1, 1 << 30));
  }
  return specs;
}

double reach_of(const std::vector<Shaped>& tensors, double changed) {
  double most = 1;
  for (const Shaped& t : tensors) {
    if (t.tensor->role == Role::kOutput) continue;
    most = std::max(most, static_cast<double>(t.elements));
  }
  return std::max(1.0, changed * most);
}

double sums_nudge(double length) { return std::sqrt(1 + length / kSumOfNudge); }

double norm_nudge(const Task& task, const Case& c) {
  return norms_account_for_all(task, c) ? sums_nudge(sum_length(task, c)) : kPlainNudge;
}

Deviation with_sums(const Deviation& nudged, double length) {
  Deviation result = nudged;
  const double sums = kSumUnit * std::sqrt(length);
  result.norm = std::max(result.norm, sums);
  result.relative = std::max(result.relative, sums);
  return result;
}

Deviation steady(const Deviation& nudged, std::int64_t elements, double largest, double rms) {
  if (elements < kFewestNormed) return {};
  Deviation result = nudged;
  if (!has_tail(elements, largest, rms) && !has_tail(elements, nudged.worst, nudged.norm)) {
    result.relative = 0;
    return result;
  }
  result.norm = 0;
  if (has_tail(elements, nudged.relative_worst, nudged.relative)) result.relative = 0;
  return result;
}

Deviation narrowed(const Deviation& nudged) {
  constexpr double kUnseen = 0x1p-30;
  Deviation result = nudged;
  result.norm = std::max(result.norm, kUnseen);
  result.relative = std::max(result.relative, kUnseen);
  result.worst = result.relative_worst = 0;
  return result;
}

void add_norm(const NormError& error, std::vector<NormError>* all) {
  for (NormError& known : *all) {
    if (known.kind != error.kind || known.named != error.named || known.tensor != error.tensor ||
        known.case_name != error.case_name) {
      continue;
    }
    if (error.got.norm > known.got.norm) known.got.common = error.got.common;
    raise(error.got, 1, &known.got);
    return;
  }
  all->push_back(error);
}

std::vector<Imprecision> judge_norm(const NormError& error, const std::string& where) {
  std::vector<Imprecision> all;
  (shows_products(error.kind) ? judge_sparse
   : shows_lost(error.kind)   ? judge_lost
                              : judge_dense)(error, where, &all);
  return all;
}

}  // namespace kernelpro
