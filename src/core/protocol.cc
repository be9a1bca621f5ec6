// SPDX-License-Identifier: Apache-2.0
#include "core/protocol.h"

#include "core/json.h"

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
  return is_floating(dtype) ? static_cast<std::uint64_t>(elements) * 8 : bytes;
}

std::vector<JudgeTensor> judge_tensors(const Task& task, const Case& c) {
  std::vector<JudgeTensor> result;
  for (const Shaped& shaped : shaped_tensors(task, c)) {
    JudgeTensor t;
    t.output = shaped.tensor->role == Role::kOutput;
    t.dtype = shaped.tensor->dtype;
    t.elements = shaped.elements;
    t.bytes = static_cast<std::uint64_t>(shaped.bytes);
    if (t.output) {
      t.tolerance = tolerance_of(*shaped.tensor);
    } else {
      t.draw = draw_spec(*shaped.tensor);
    }
    result.push_back(t);
  }
  return result;
}

std::string judge_tensors_to_json(const std::vector<JudgeTensor>& tensors) {
  Json all = Json::array();
  for (const JudgeTensor& t : tensors) {
    all.push_back({{"output", t.output},
                   {"dtype", dtype_name(t.dtype)},
                   {"elements", t.elements},
                   {"bytes", t.bytes},
                   {"kind", t.draw.kind},
                   {"a", static_cast<double>(t.draw.a)},
                   {"b", static_cast<double>(t.draw.b)},
                   {"low", t.draw.low},
                   {"range", static_cast<std::uint64_t>(t.draw.range)},
                   {"tolerance", t.tolerance}});
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
    if (!dtype) return std::nullopt;
    JudgeTensor t;
    t.output = r.flag("output");
    t.dtype = *dtype;
    t.elements = r.integer("elements");
    t.bytes = r.natural("bytes");
    t.draw.kind = static_cast<int>(r.integer("kind"));
    t.draw.dtype = static_cast<int>(*dtype);
    t.draw.a = static_cast<float>(r.real("a"));
    t.draw.b = static_cast<float>(r.real("b"));
    t.draw.low = r.integer("low");
    t.draw.range = r.natural("range");
    t.tolerance = r.real("tolerance");
    result.push_back(t);
  }
  return result;
}

}  // namespace kernelpro
