// SPDX-License-Identifier: Apache-2.0
#include "core/shapes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/json.h"

namespace kernelpro {

namespace {

constexpr double kMostWhole = 9007199254740992.0;  // 2^53: doubles hold all integers up to it

Surveyed survey(DType dtype, std::int64_t count, const char* data) {
  Surveyed s;
  s.rises = true;
  bool any = false;
  double before = -INFINITY;
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = element_as_double(dtype, data, i);
    s.rises = s.rises && v >= before;
    before = v;
    if (!std::isfinite(v)) continue;
    s.low = any ? std::min(s.low, v) : v;
    s.high = any ? std::max(s.high, v) : v;
    any = true;
  }
  return s;
}

}  // namespace

bool wants_survey(const kp::ShapeSpec& spec) {
  switch (spec.shape) {
    case kp::kGrow:
    case kp::kRepeated:
    case kp::kRows:
    case kp::kTop:
      return true;
    case kp::kEnds:
    case kp::kEqual:
    case kp::kRamp:
      return spec.range == 0;
    default:
      return false;
  }
}

bool fit(const Surveyed& values, kp::ShapeSpec* spec) {
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
  int exponent = 0;
  std::frexp(std::max(std::fabs(values.low), std::fabs(values.high)), &exponent);
  spec->factor = spec->shape == kp::kGrow
                     ? std::ldexp(1.0f, std::clamp(1 - exponent, 3, 60))
                     : std::ldexp(1.0f, std::max(exponent - 7, -100));  // 64 to 128 steps
  return true;
}

void reshape(kp::ShapeSpec spec, std::uint64_t key, std::vector<char>* data) {
  const auto dtype = static_cast<DType>(spec.dtype);
  const auto size = static_cast<std::size_t>(dtype_bytes(dtype));
  const std::size_t count = data->size() / size;
  if (wants_survey(spec) &&
      !fit(survey(dtype, static_cast<std::int64_t>(count), data->data()), &spec)) {
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    unsigned long long bits = 0;
    std::memcpy(&bits, data->data() + i * size, size);
    bits = kp::reshaped_bits(spec, key, i, bits);
    std::memcpy(data->data() + i * size, &bits, size);
  }
}

std::string shape_specs_to_json(const std::vector<kp::ShapeSpec>& specs) {
  Json all = Json::array();
  for (const kp::ShapeSpec& s : specs) {
    all.push_back({{"shape", s.shape},
                   {"dtype", s.dtype},
                   {"period", s.period},
                   {"depth", s.depth},
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
    s.factor = static_cast<float>(r.real("factor"));
    s.first = r.integer("first");
    s.range = r.natural("range");
    s.row = r.natural("row");
    s.inner = r.natural("inner");
    s.channels = r.natural("channels");
    s.count = r.natural("count");
    const bool good = s.shape >= kp::kUnchanged && s.shape <= kp::kNudge && s.dtype >= 0 &&
                      s.dtype <= 5 && s.period > 0 && s.depth > 0 && s.row > 0 && s.inner > 0 &&
                      s.channels > 0 && s.count > 0;
    if (s.shape != kp::kUnchanged && !good) return std::nullopt;
    specs.push_back(s);
  }
  return specs;
}

}  // namespace kernelpro
