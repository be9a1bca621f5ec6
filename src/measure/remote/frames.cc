// SPDX-License-Identifier: Apache-2.0
#include "measure/remote/frames.h"

#include "base/json.h"

namespace kernelpro {

namespace {

Json value_of(const std::string& json) { return parse_json(json).value_or(Json::object()); }

// Kinds and causes by name, so that versions may differ in their order.
constexpr struct {
  ErrorKind kind;
  const char* name;
} kKinds[] = {{ErrorKind::kBadInput, "bad-input"}, {ErrorKind::kEnvironment, "environment"},
              {ErrorKind::kBusy, "busy"},          {ErrorKind::kStore, "store"},
              {ErrorKind::kTask, "task"},          {ErrorKind::kInternal, "internal"}};

constexpr struct {
  Cause cause;
  const char* name;
} kCauses[] = {{Cause::kTooMuch, "too-much"},  {Cause::kNoCode, "no-code"},
               {Cause::kInUse, "in-use"},      {Cause::kForbidden, "forbidden"},
               {Cause::kProfiler, "profiler"}, {Cause::kGone, "gone"}};

}  // namespace

std::string hello_frame(const std::vector<std::uint64_t>& waiting) {
  return dump_json({{"hello", kRemoteProtocol}, {"waiting", waiting}});
}

std::string ask_frame(std::uint64_t id, const std::string& verb, const std::string& body) {
  return dump_json({{"ask", verb}, {"id", id}, {"body", value_of(body)}});
}

std::string number_frame(const char* what, std::uint64_t id) { return dump_json({{what, id}}); }

std::string welcome_frame(const std::vector<std::uint64_t>& known) {
  return dump_json({{"hello", kRemoteProtocol}, {"version", KERNELPRO_VERSION}, {"known", known}});
}

std::string phase_frame(std::uint64_t id, const std::string& phase) {
  return dump_json({{"id", id}, {"phase", phase}});
}

std::string answer_frame(std::uint64_t id, const Result<std::string>& answer) {
  Json json = {{"id", id}};
  if (answer) {
    json["answer"] = value_of(*answer);
  } else {
    json["error"] = value_of(error_to_json(answer.error()));
  }
  return dump_json(json);
}

std::string error_to_json(const Error& error) {
  Json json = {{"message", error.message}, {"next", error.next}};
  for (const auto& row : kKinds) {
    if (row.kind == error.kind) json["kind"] = row.name;
  }
  for (const auto& row : kCauses) {
    if (row.cause == error.cause) json["cause"] = row.name;
  }
  return dump_json(json);
}

Error error_from_json(const std::string& text) {
  const Json json = value_of(text);
  const JsonReader r(json);
  Error error{ErrorKind::kInternal, r.text("message", "the station failed without a reason"),
              r.text("next")};
  for (const auto& row : kKinds) {
    if (r.text("kind") == row.name) error.kind = row.kind;
  }
  for (const auto& row : kCauses) {
    if (r.text("cause") == row.name) error.cause = row.cause;
  }
  return error;
}

}  // namespace kernelpro
