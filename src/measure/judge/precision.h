// SPDX-License-Identifier: Apache-2.0
// How precise are a kernel's results as a whole? Compared with what honest fp32 arithmetic reaches,
// which the reference shows: its float64 results change, in norm, by more than that when its
// operands are rounded. Shared by both targets. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/task/deviation.h"
#include "core/task/shapes.h"
#include "core/task/task.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

// Whether the norm of an honest kernel's errors is known on these contents: those that are drawn as
// the task says, or nearly so. Only in fp32 tasks.
bool shows_norm(DrawKind kind);
// Whether results on these contents differ so much in size that a tolerance by the root mean square
// of all excuses the loss of many: then as many may be lost as on nudged inputs, or few.
bool shows_lost(DrawKind kind);
bool norms_apply(const Task& task);
// Whether rounded operands or nudged inputs account for everything that an honest kernel rounds:
// a module's operators do, and so do the factors of products. A task folder that declares none may
// multiply by what it computes itself, such as the cosine of a large number; a kernel that errs by
// more is labelled, not rejected.
bool norms_account_for_all(const Task& task, const Case& c);

// Terms of a sum, from the declared work; without products, also from the shapes: `reach` is the
// number of inputs that a result depends on.
double sum_length(const Task& task, const Case& c);
double plain_length(const Task& task, const Case& c, double reach);
// Of the terms that count on contents of this kind: of few, no sum errs.
double plain_length(const Task& task, const Case& c, double reach, DrawKind kind);
// Whether `reach` has to be measured, and how: some elements of all inputs are changed
// (few_shapes), which changes this fraction of the results; the largest of all outputs counts.
bool wants_reach(const Task& task, const Case& c);
std::vector<kp::ShapeSpec> few_shapes(const std::vector<Shaped>& tensors);
double reach_of(const std::vector<Shaped>& tensors, double changed);

// The error that an honest kernel's norm is measured by, from nudged results of a task folder:
// plain sums of either sign err by up to 0.3 sqrt(n) 2^-24 of the root of their terms' squares, and
// by 0.23 sqrt(n) 2^-24 of themselves if all terms have one.
double sums_nudge(double length);  // the nudge, over that of kNudges
// The nudge of a task without products, where nothing but functions and sums is rounded: these are
// allowed for by kNormFloor and with_sums.
inline constexpr double kPlainNudge = 0.25;
double norm_nudge(const Task& task, const Case& c);
Deviation with_sums(const Deviation& nudged, double length);
// Zero where few elements decide, so that it differs from draw to draw: `norm`, then `relative`
// takes its place, unless that is so, too. `largest`: of the expected values, `rms` their root mean
// square.
Deviation steady(const Deviation& nudged, std::int64_t elements, double largest, double rms);
inline constexpr std::int64_t kFewestNormed = 16;  // elements; of fewer, none is known
// Results on kSparing's contents depend on few elements, and are compared even if they are few: the
// largest of so many deviations on nudged inputs counts.
inline constexpr int kSparingRuns = 4;

// Of a half type's nudged results, once rounded to it: only few elements show that they were
// nudged.
Deviation narrowed(const Deviation& nudged);

// The deviation of a floating output on contents of shows_norm or shows_products (probe_shapes.h),
// and that of the reference on nudged ones (or of a module in plain fp32, times kPlainRoom, where
// that is larger).
struct NormError {
  std::string case_name, tensor;
  Deviation got, nudged;
  DrawKind kind = DrawKind::kSparse;
  std::vector<std::int64_t> shape = {};  // of the output
  DType dtype = DType::kFp32;
  double length = 0;      // plain_length
  bool linear = false;    // in each of its inputs: whatever rows have in common are operands
  bool accounted = true;  // norms_account_for_all
  int named = -1;         // the tensor that kFaint is about
  double tolerance = 0;   // the task author's, of the output; 0: none
};
// Keeps the largest of each case, tensor and kind.
void add_norm(const NormError& error, std::vector<NormError>* all);

struct Imprecision {
  enum class Kind { kRejected, kCoarser, kByNorm, kLost } kind = Kind::kCoarser;
  std::string what;  // "the errors of c are 1e-5 of its norm (plain fp32: at most 2e-6)"
};
// What is wrong with it, if anything. `where`: "on the task's own inputs".
//
// On sparse inputs the norm of the errors decides: products in fp32 reach 3e-8 of the norm of the
// results, three bf16 parts 5e-9, Winograd's F(2x2) 1e-7 and F(4x4) 1e-6, two bf16 parts 3e-6. So
// an output is rejected above about 1.9e-6 (kNormRoom times the deviation on nudged inputs), and
// one whose elements err by more than 2^-18 gets the label "precise-by-norm": a fast algorithm.
//
// On other contents sums are long. There the results of the reference change too, with operands
// rounded as plain sums in any order round them: plain fp32, naive sums included, reaches half of
// that norm. An output that errs by more gets the label "coarser-than-fp32", as do two bf16 parts
// and long sums by a fast algorithm; one that errs by kCoarse times that much is rejected.
//
// Where results are linear in each of the inputs, their errors' means along axes show the operands'
// precision apart from that of the sums, whose errors average out: plain fp32 reaches an eighth of
// kMeansRoom times what sums in any order allow. A common factor does not count here either.
std::vector<Imprecision> judge_norm(const NormError& error, const std::string& where);

// Where shows_lost: of an output at most 1 in 128 elements more may be lost than several times what
// honest rounding loses.
inline constexpr double kLostShare = 1.0 / 128, kLostRoom = 8;
inline constexpr double kFewestLost = 2;  // elements

inline constexpr int kNormRuns = 2;  // of a module with rounded operands, where elements are few
inline constexpr double kCoarse = 8;
inline constexpr double kNormRoom = 1.4;
// Of sums that are rounded all along (kDimSums): Strassen's algorithm adds rows of different sizes
// before it multiplies, and reaches 1.7 times the deviation on nudged inputs; sixteen bits reach 5.
inline constexpr double kDimRoom = 2.5;
inline constexpr double kNormFloor = 0x1p-20;  // for fast functions of few elements
// A module in plain fp32 errs by what its products and everything else need: this much more passes.
inline constexpr double kPlainRoom = 1.5;  // times kNormRoom
inline constexpr double kElementRoom = 0x1p-18;
inline constexpr double kElementNudged = 0.5;  // of the largest deviation on nudged inputs
inline constexpr double kMeansRoom = 4;        // of sums; half of it of nudged inputs
inline constexpr double kHalfRoom = 4;  // of outputs in half precision: few elements show errors
inline constexpr double kRelativeRoom = 2;     // of norms by each element's own size
inline constexpr double kUnaccountedRoom = 2;  // where norms do not account for everything

}  // namespace kernelpro
