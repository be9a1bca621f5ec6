// SPDX-License-Identifier: Apache-2.0
#include "core/plan/protocol.h"

#include "base/json.h"

namespace kernelpro {

std::string layout_to_json(const AddressLayout& layout) {
  Json slots = Json::array();
  for (const AddressLayout::Slot& s : layout.slots) {
    slots.push_back({s.address, s.bytes, s.mapping, s.mapping_bytes});
  }
  return dump_json({{"base", layout.base},
                    {"reserve_bytes", layout.reserve_bytes},
                    {"has_workspace", layout.has_workspace},
                    {"slots", slots}});
}

std::optional<AddressLayout> layout_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  AddressLayout layout;
  layout.base = r.natural("base");
  layout.reserve_bytes = r.natural("reserve_bytes");
  layout.has_workspace = r.flag("has_workspace");
  for (const Json& slot : r.array("slots")) {
    if (!slot.is_array() || slot.size() != 4) return std::nullopt;
    std::uint64_t v[4];
    for (std::size_t i = 0; i < 4; ++i) {
      if (!slot[i].is_number_unsigned()) return std::nullopt;
      v[i] = slot[i].get<std::uint64_t>();
    }
    layout.slots.push_back({v[0], v[1], v[2], v[3]});
  }
  return layout;
}

std::uint64_t JudgeTensor::expected_bytes() const {
  return wide && is_floating(dtype) ? static_cast<std::uint64_t>(elements) * 8 : bytes;
}

std::vector<JudgeTensor> judge_tensors(const Task& task, const Case& c, Policy policy, bool wide) {
  std::vector<JudgeTensor> result;
  for (const Shaped& shaped : shaped_tensors(task, c)) {
    JudgeTensor t;
    t.name = shaped.tensor->name;
    t.role = shaped.tensor->role;
    t.output = t.role == Role::kOutput;
    t.dtype = shaped.tensor->dtype;
    t.elements = shaped.elements;
    t.bytes = static_cast<std::uint64_t>(shaped.bytes);
    t.wide = wide;
    if (t.output) {
      t.rule = rule_for(task, *shaped.tensor, policy);
    } else {
      t.draw = draw_spec(*shaped.tensor);
    }
    result.push_back(std::move(t));
  }
  return result;
}

namespace {

Json spec_to_json(const kp::DrawSpec& spec) {
  return Json::array({spec.kind, spec.a, spec.b, spec.low, static_cast<std::uint64_t>(spec.range),
                      static_cast<double>(spec.first), static_cast<double>(spec.last)});
}

std::optional<kp::DrawSpec> spec_from_json(const Json& json, DType dtype) {
  if (!json.is_array() || json.size() != 7) return std::nullopt;
  for (const Json& value : json) {
    if (!value.is_number()) return std::nullopt;
  }
  kp::DrawSpec spec{};
  spec.kind = json[0].get<int>();
  spec.dtype = static_cast<int>(dtype);
  spec.a = json[1].get<double>();
  spec.b = json[2].get<double>();
  spec.low = json[3].get<long long>();
  spec.range = json[4].get<unsigned long long>();
  spec.first = static_cast<float>(json[5].get<double>());
  spec.last = static_cast<float>(json[6].get<double>());
  return spec;
}

}  // namespace

std::string judge_tensors_to_json(const std::vector<JudgeTensor>& tensors) {
  Json all = Json::array();
  for (const JudgeTensor& t : tensors) {
    all.push_back({{"name", t.name},
                   {"role", role_name(t.role)},
                   {"dtype", dtype_name(t.dtype)},
                   {"elements", t.elements},
                   {"bytes", t.bytes},
                   {"draw", spec_to_json(t.draw)},
                   {"rule", t.rule.kind == Rule::Kind::kScaled ? "scaled" : "allclose"},
                   {"tolerance", t.rule.tolerance},
                   {"absolute", t.rule.absolute},
                   {"relative", t.rule.relative},
                   {"wide", t.wide}});
  }
  return dump_json(all);
}

std::optional<std::vector<JudgeTensor>> judge_tensors_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_array()) return std::nullopt;
  std::vector<JudgeTensor> result;
  for (const Json& item : *root) {
    const JsonReader r(item);
    const auto dtype = dtype_from_name(r.text("dtype"));
    const auto role = role_from_name(r.text("role"));
    if (!dtype || !role) return std::nullopt;
    const auto draw = spec_from_json(r.array("draw"), *dtype);
    if (!draw) return std::nullopt;
    JudgeTensor t;
    t.name = r.text("name");
    t.role = *role;
    t.output = *role == Role::kOutput;
    t.dtype = *dtype;
    t.elements = r.integer("elements");
    t.bytes = r.natural("bytes");
    t.draw = *draw;
    t.rule.kind = r.text("rule") == "allclose" ? Rule::Kind::kAllclose : Rule::Kind::kScaled;
    t.rule.tolerance = r.real("tolerance");
    t.rule.absolute = r.real("absolute");
    t.rule.relative = r.real("relative");
    t.wide = r.flag("wide");
    result.push_back(std::move(t));
  }
  return result;
}

std::string draw_specs_to_json(const std::vector<kp::DrawSpec>& specs) {
  Json all = Json::array();
  for (const kp::DrawSpec& spec : specs) all.push_back(spec_to_json(spec));
  return dump_json(all);
}

std::optional<std::vector<kp::DrawSpec>> draw_specs_from_json(
    const std::string& json, const std::vector<JudgeTensor>& tensors) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_array() || root->size() != tensors.size()) return std::nullopt;
  std::vector<kp::DrawSpec> specs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto spec = spec_from_json((*root)[i], tensors[i].dtype);
    if (!spec) return std::nullopt;
    specs.push_back(*spec);
  }
  return specs;
}

}  // namespace kernelpro
