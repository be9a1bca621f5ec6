// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/operators_json.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostOperators = 4096;
constexpr std::size_t kMostInputs = 64;
constexpr std::size_t kMostName = 80;
constexpr double kMostBytes = 1e15;

using plain::Plain;

double amount(const Plain& json, const char* name) {
  const Plain& value = plain::member(json, name);
  const double real = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(real) ? std::clamp(real, 0.0, kMostBytes) : 0;
}

int count(const Plain& json, const char* name) {
  return static_cast<int>(std::min(amount(json, name), 1e9));
}

std::optional<OperatorCall> operator_from_json(const Plain& item, std::size_t index) {
  const auto kind = operator_kind_from_name(plain::text(item, "kind"));
  OperatorCall call;
  call.name = clip(plain::text(item, "name"), kMostName);
  if (call.name.empty() || !kind) return std::nullopt;
  call.kind = *kind;
  call.where = clip(plain::text(item, "where"), kMostName);
  call.first = count(item, "first");
  call.nodes = count(item, "nodes");
  call.read_bytes = amount(item, "read");
  call.written_bytes = amount(item, "written");
  call.flops = amount(item, "flops");
  call.us = amount(item, "us");
  for (const Plain& input : plain::array(item, "from")) {
    if (call.from.size() == kMostInputs) break;
    if (!input.is_array() || input.size() != 2 || !input[0].is_number_unsigned() ||
        !input[1].is_number() || input[0].get<std::uint64_t>() >= index) {
      return std::nullopt;
    }
    const auto bytes = input[1].get<double>();
    if (!std::isfinite(bytes) || bytes < 0) return std::nullopt;
    call.from.push_back({static_cast<int>(input[0].get<std::uint64_t>()), bytes});
  }
  return call;
}

}  // namespace

Json operators_to_json(const std::vector<OperatorCall>& operators) {
  Json list = Json::array();
  for (const OperatorCall& call : operators) {
    Json from = Json::array();
    for (const OperatorCall::Input& input : call.from) from.push_back({input.from, input.bytes});
    list.push_back({{"name", call.name},
                    {"where", call.where},
                    {"kind", operator_kind_name(call.kind)},
                    {"first", call.first},
                    {"nodes", call.nodes},
                    {"read", call.read_bytes},
                    {"written", call.written_bytes},
                    {"flops", call.flops},
                    {"us", call.us},
                    {"from", std::move(from)}});
  }
  return list;
}

std::vector<OperatorCall> operators_from_json(const Plain& list) {
  std::vector<OperatorCall> operators;
  if (!list.is_array()) return operators;
  for (const Plain& item : list) {
    auto call = operator_from_json(item, operators.size());
    if (!call || operators.size() == kMostOperators) break;
    operators.push_back(std::move(*call));
  }
  return operators;
}

}  // namespace kernelpro
