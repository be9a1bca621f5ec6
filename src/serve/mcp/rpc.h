// SPDX-License-Identifier: Apache-2.0
// The subset of JSON-RPC 2.0 that MCP uses: parses a frame, or returns the error to reply with.
// Safe on any bytes. Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/json.h"

namespace kernelpro {

inline constexpr int kRpcParseError = -32700;
inline constexpr int kRpcInvalidRequest = -32600;
inline constexpr int kRpcMethodNotFound = -32601;
inline constexpr int kRpcInvalidParams = -32602;
inline constexpr int kRpcResourceNotFound = -32002;  // of MCP

struct RpcMessage {
  enum class Kind { kRequest, kNotification, kResponse };
  Kind kind = Kind::kRequest;
  Json id;  // a string or an integer; null for a notification
  std::string method;
  Json params = Json::object();  // always an object
};

struct RpcFault {
  Json answer;  // the JSON-RPC error to send
};

struct RpcFrame {
  bool batch = false;
  std::vector<std::variant<RpcMessage, RpcFault>> parts;
};

RpcFrame read_rpc(const std::string& frame);

Json rpc_result(const Json& id, Json result);
Json rpc_error(const Json& id, int code, const std::string& message);
Json rpc_notification(const std::string& method, Json params);

}  // namespace kernelpro
