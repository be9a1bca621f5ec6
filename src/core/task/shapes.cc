// SPDX-License-Identifier: Apache-2.0
#include "core/task/shapes.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace kernelpro {

namespace {

constexpr double kMostWhole = 9007199254740992.0;  // 2^53: doubles hold all integers up to it

int exponent_of(const Surveyed& values) {
  int exponent = 0;
  std::frexp(std::max(std::fabs(values.low), std::fabs(values.high)), &exponent);
  return exponent;
}

// At least 8, and so that the largest becomes at least 1; at most `limit`, unless that is 0.
float growth(const Surveyed& values, float limit) {
  const float factor = std::ldexp(1.0f, std::clamp(1 - exponent_of(values), 3, 60));
  return limit > 0 ? std::min(factor, limit) : factor;
}

}  // namespace

bool wants_survey(const kp::ShapeSpec& spec) {
  switch (spec.shape) {
    case kp::kGrow:
    case kp::kRepeated:
    case kp::kRows:
    case kp::kTop:
    case kp::kJitter:
    case kp::kFew:
    case kp::kFractions:
    case kp::kOutlier:
    case kp::kBackground:
      return true;
    case kp::kEnds:
    case kp::kEqual:
    case kp::kRamp:
    case kp::kRuns:
      return spec.range == 0;
    default:
      return false;
  }
}

namespace {

// Constant tensors of either kind; of the others, floating ones.
bool fit_few(const Surveyed& values, kp::ShapeSpec* spec) {
  spec->low = static_cast<float>(values.low);
  spec->high = static_cast<float>(values.high);
  spec->first = static_cast<long long>(std::clamp(values.low, -kMostWhole, kMostWhole));
  if (values.low == values.high) return true;
  if (spec->shape == kp::kJitter || !is_floating(static_cast<DType>(spec->dtype))) return false;
  if (spec->factor == 0) spec->factor = growth(values, 0);
  // A change of sign is none where there are both.
  if (values.low < 0 && values.high > 0) spec->factor = std::fabs(spec->factor);
  return true;
}

}  // namespace

bool fit(const Surveyed& values, kp::ShapeSpec* spec) {
  if (spec->shape == kp::kJitter || spec->shape == kp::kFew) return fit_few(values, spec);
  if (spec->shape != kp::kGrow && !(values.low < values.high)) return false;
  if (!is_floating(static_cast<DType>(spec->dtype))) {
    if (values.rises || std::fabs(values.low) > kMostWhole || values.high > kMostWhole) {
      return false;
    }
    spec->first = static_cast<long long>(values.low);
    spec->range = static_cast<unsigned long long>(values.high - values.low);
    return true;
  }
  spec->low = static_cast<float>(values.low);
  spec->high = static_cast<float>(values.high);
  if (spec->shape == kp::kFractions) return values.whole && values.high - values.low >= 2;
  if (spec->shape == kp::kBackground && values.whole) spec->sign = 0;  // perhaps a mask
  if (spec->shape == kp::kOutlier || spec->shape == kp::kBackground) return true;
  spec->factor =
      spec->shape == kp::kGrow
          ? growth(values, spec->factor)
          : std::ldexp(1.0f, std::max(exponent_of(values) - 7, -100));  // 64 to 128 steps
  return true;
}

std::string shape_specs_to_json(const std::vector<kp::ShapeSpec>& specs) {
  Json all = Json::array();
  for (const kp::ShapeSpec& s : specs) {
    all.push_back({{"shape", s.shape},
                   {"dtype", s.dtype},
                   {"period", s.period},
                   {"depth", s.depth},
                   {"sign", s.sign},
                   {"factor", s.factor},
                   {"first", s.first},
                   {"range", s.range},
                   {"row", s.row},
                   {"inner", s.inner},
                   {"channels", s.channels},
                   {"count", s.count}});
  }
  return dump_json(all);
}

std::optional<std::vector<kp::ShapeSpec>> shape_specs_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_array()) return std::nullopt;
  std::vector<kp::ShapeSpec> specs;
  for (const Json& item : *root) {
    const JsonReader r(item);
    kp::ShapeSpec s{};
    s.shape = static_cast<int>(r.integer("shape"));
    s.dtype = static_cast<int>(r.integer("dtype"));
    s.period = static_cast<unsigned>(r.natural("period"));
    s.depth = static_cast<unsigned>(r.natural("depth"));
    s.sign = static_cast<int>(r.integer("sign"));
    s.factor = static_cast<float>(r.real("factor"));
    s.first = r.integer("first");
    s.range = r.natural("range");
    s.row = r.natural("row");
    s.inner = r.natural("inner");
    s.channels = r.natural("channels");
    s.count = r.natural("count");
    const bool flat = s.shape == kp::kSlabs || s.shape == kp::kFew;
    const bool good = s.shape >= kp::kUnchanged && s.shape <= kp::kNudge && s.dtype >= 0 &&
                      s.dtype <= 5 && s.period > 0 && (s.depth > 0 || flat) && s.row > 0 &&
                      s.inner > 0 && s.channels > 0 && s.count > 0;
    if (s.shape != kp::kUnchanged && !good) return std::nullopt;
    specs.push_back(s);
  }
  return specs;
}

}  // namespace kernelpro
