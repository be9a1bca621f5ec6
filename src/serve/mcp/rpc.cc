// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/rpc.h"

#include <string_view>

namespace kernelpro {

namespace {

constexpr int kMaxDepth = 64;  // no valid message nests deeper
constexpr std::size_t kMaxBatch = 100;
constexpr std::size_t kMaxId = 256;

bool is_id(const Json& id) {
  return id.is_number_integer() ||
         (id.is_string() && id.get_ref<const std::string&>().size() <= kMaxId);
}

RpcFault invalid(const Json& id, const std::string& what) {
  return {rpc_error(id, kRpcInvalidRequest, what)};
}

std::variant<RpcMessage, RpcFault> read_one(const Json& json) {
  if (!json.is_object()) return invalid(nullptr, "a message is a JSON object");
  const auto id = json.find("id");
  const bool has_id = id != json.end();
  if (has_id && !is_id(*id)) {
    return invalid(nullptr, "the id of a message is an integer or a string of 256 bytes at most");
  }
  const Json own = has_id ? *id : Json();
  const auto version = json.find("jsonrpc");
  if (version == json.end() || *version != "2.0") {
    return invalid(own, "the member jsonrpc must be \"2.0\"");
  }
  RpcMessage message;
  message.id = own;
  const auto method = json.find("method");
  if (method == json.end()) {
    if (has_id && (json.contains("result") || json.contains("error"))) {
      message.kind = RpcMessage::Kind::kResponse;
      return message;
    }
    return invalid(own, "a message has a method, or answers with a result or an error");
  }
  if (!method->is_string()) return invalid(own, "the method of a message is a string");
  message.method = method->get<std::string>();
  message.kind = has_id ? RpcMessage::Kind::kRequest : RpcMessage::Kind::kNotification;
  const auto params = json.find("params");
  if (params != json.end() && !params->is_null()) {
    if (!params->is_object()) return invalid(own, "the params of a message are an object");
    message.params = *params;
  }
  return message;
}

}  // namespace

RpcFrame read_rpc(const std::string& frame) {
  RpcFrame read;
  if (nests_deeper(frame, kMaxDepth)) {
    read.parts.emplace_back(invalid(nullptr, "the message is nested too deeply"));
    return read;
  }
  const std::optional<Json> json = parse_json(frame);
  if (!json) {
    read.parts.emplace_back(
        RpcFault{rpc_error(nullptr, kRpcParseError, "the message is not JSON in valid UTF-8")});
    return read;
  }
  if (!json->is_array()) {
    read.parts.push_back(read_one(*json));
    return read;
  }
  if (json->empty() || json->size() > kMaxBatch) {
    read.parts.emplace_back(invalid(nullptr, "a batch has 1 to 100 messages"));
    return read;
  }
  read.batch = true;
  for (const Json& each : *json) read.parts.push_back(read_one(each));
  return read;
}

Json rpc_result(const Json& id, Json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

Json rpc_error(const Json& id, int code, const std::string& message) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
}

Json rpc_notification(const std::string& method, Json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

}  // namespace kernelpro
