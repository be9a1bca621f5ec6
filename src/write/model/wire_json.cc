// SPDX-License-Identifier: Apache-2.0
#include "write/model/wire_json.h"

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr int kMaxDepth = 200;
constexpr std::int64_t kMostTokens = 1'000'000'000;

}  // namespace

std::optional<Json> parse_foreign_json(const std::string& text) {
  if (nests_deeper(text, kMaxDepth)) return std::nullopt;
  std::optional<Json> json = parse_json(text);
  if (json) return json;
  // Invalid UTF-8 (such as a character cut in two by the server) costs a character, not a reply.
  std::string clean = printable(text);
  return clean == text ? std::nullopt : parse_json(clean);
}

std::optional<Json> parse_object(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  std::optional<Json> json = parse_foreign_json(text);
  if (!json || !json->is_object()) return std::nullopt;
  return json;
}

std::int64_t token_count(const Json& json, const char* name, std::int64_t otherwise) {
  const std::int64_t count = JsonReader(json).integer(name, -1);
  return count < 0 || count > kMostTokens ? otherwise : count;
}

std::optional<Failure> read_error(int status, const Json& json) {
  const Json* error = JsonReader(json).member("error");
  if (error == nullptr || error->is_null()) return std::nullopt;
  if (error->is_string()) {
    return failure_of_error(status, "", "", error->get<std::string>());
  }
  const JsonReader reader(*error);
  std::string code = reader.text("code");
  const std::int64_t number = reader.integer("code");
  if (code.empty() && number != 0) code = std::to_string(number);
  return failure_of_error(status, reader.text("type"), code, reader.text("message"));
}

}  // namespace kernelpro
