// SPDX-License-Identifier: Apache-2.0
// What is to be known of each kind of draw (task/reference/module_reference.h), in one row. To add
// a kind of probe: an enumerator there, at the place where plan_probes is to put it, and a row
// here; code elsewhere only for what no other kind needs. Private to this folder: others ask
// probes.h, probe_shapes.h and precision.h. Pure.
#pragma once

#include <span>
#include <string_view>

#include "core/task/shapes.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

// The tensors that a kind's shape may change.
enum class ProbedTensors {
  kNone,
  kContinuous,     // floating inputs that are neither constant nor integers
  kDiscrete,       // integers and masks among the inputs
  kConstant,       // constant inputs
  kVarious,        // inputs of any kind but integers that differ
  kWholeNumbers,   // floating inputs that hold whole numbers
  kNamed,          // one of named_candidates
  kFactors,        // among linear_candidates
  kParameters,     // floating parameters that are not constant
  kAnyParameters,  // floating parameters but integers that differ
};

// The class of a probe, of which put_telling_first puts one of each first, in this order.
enum class ProbeRank {
  kProducts,
  kSparing,
  kParameters,
  kFew,
  kSizes,
  kLone,
  kFewParameters,
  kOther
};

// Whether an honest kernel takes as long on other values.
enum class ProbeTimes { kDiffer, kSameIfProducts, kSame };

// Levels (probe_levels) of kinds that make values large, parameters large, or give all elements
// but a few one value.
inline constexpr int kLargeLevels = 5, kParameterLevels = 3, kBackgroundLevels = 3;

struct ProbeRow {
  DrawKind kind = DrawKind::kGiven;
  std::string_view words;  // for messages: "on smaller inputs"
  bool drawn = false;      // drawn otherwise (by probe_init or the module) to begin with
  kp::Shape shape = kp::kUnchanged;
  ProbedTensors tensors = ProbedTensors::kNone;
  int levels = 1;
  ProbeRank rank = ProbeRank::kOther;
  int draws = 1;      // with other places each: a kernel that reads only some elements may pass one
                      // draw by luck
  bool each = false;  // comes first with all its probes, not with one of its class
  ProbeTimes times = ProbeTimes::kDiffer;
  bool makes_equal = false;         // elements that an index could name either of
  bool by_place = false;            // depends on the place: a symmetric matrix would not stay one
  bool few = false;                 // about as many elements change in tensors of any size
  bool changes_parameters = false;  // a failure says nothing about other inputs
  bool wants_products = false;      // only in tasks with matrix products, in fp32
  bool shows_products = false;      // sums of few products show how precise these are
  bool short_sums = false;          // those of short_sums.h
  bool shows_norm = false;          // the norm of an honest kernel's errors is known
  bool shows_rounding = false;      // small errors are those of less than fp32
  bool usual_scale = false;         // a shape whose rounding errors do not add up: no kShapeRoom
};

// In the order of the enum.
std::span<const ProbeRow> probe_rows();
const ProbeRow& probe_row(DrawKind kind);

}  // namespace kernelpro
