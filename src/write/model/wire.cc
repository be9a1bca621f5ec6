// SPDX-License-Identifier: Apache-2.0
#include "write/model/wire.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "write/model/apis.h"
#include "write/model/retry.h"
#include "write/model/wire_json.h"

namespace kernelpro {
namespace {

constexpr std::size_t kShown = 400;  // bytes of a server's message

std::string shown(std::string_view text) {
  std::string result = printable(trim(text).substr(0, kShown));
  std::replace(result.begin(), result.end(), '\n', ' ');
  if (trim(text).size() > kShown) result += " ...";
  return result;
}

Failure failure(FailureKind kind, std::string message) {
  Failure result;
  result.kind = kind;
  result.message = std::move(message);
  result.next = next_step(kind);
  result.retryable = worth_retrying(kind);
  return result;
}

bool is(const std::string& word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

FailureKind kind_of_status(int status) {
  switch (status) {
    case 401:
    case 402:
    case 403:
      return FailureKind::kAuth;
    case 408:
      return FailureKind::kTimedOut;
    case 409:
    case 503:
    case 529:
      return FailureKind::kOverloaded;
    case 429:
      return FailureKind::kRateLimited;
    case 500:
    case 502:
    case 504:
      return FailureKind::kServerError;
    default:
      return status >= 500 ? FailureKind::kServerError : FailureKind::kBadRequest;
  }
}

// By the words of both APIs; nullopt: they do not decide.
std::optional<FailureKind> kind_of_words(const std::string& type, const std::string& code) {
  if (is(code, {"model_not_found"}) || type == "not_found_error") return FailureKind::kUnknownModel;
  if (is(code, {"insufficient_quota"}) || is(type, {"insufficient_quota", "billing_error"})) {
    return FailureKind::kAuth;
  }
  if (is(type, {"authentication_error", "permission_error"}) || code == "invalid_api_key") {
    return FailureKind::kAuth;
  }
  if (is(type, {"overloaded_error", "service_unavailable_error"})) return FailureKind::kOverloaded;
  if (type == "rate_limit_error" || code == "rate_limit_exceeded") return FailureKind::kRateLimited;
  if (type == "timeout_error") return FailureKind::kTimedOut;
  if (is(type, {"api_error", "server_error", "internal_server_error"})) {
    return FailureKind::kServerError;
  }
  if (is(type, {"invalid_request_error", "request_too_large", "BadRequestError"})) {
    return FailureKind::kBadRequest;
  }
  return std::nullopt;
}

// A 400 whose text says that it is about the model's name or the key: gateways answer so before
// they look at the rest.
std::optional<FailureKind> kind_of_text(const std::string& type, const std::string& message) {
  const std::string small = small_letters(message);
  const auto says = [&](std::initializer_list<std::string_view> list) {
    return std::any_of(list.begin(), list.end(),
                       [&](std::string_view words) { return contains(small, words); });
  };
  if (type == "no_db_connection" || says({"invalid api key", "invalid api_key", "incorrect api key",
                                          "no api key", "missing api key"})) {
    return FailureKind::kAuth;
  }
  const bool names_one = says({"invalid model name", "unknown model", "no such model"}) ||
                         (says({"the model "}) && says({"does not exist", "not found"}));
  return names_one ? std::optional(FailureKind::kUnknownModel) : std::nullopt;
}

}  // namespace

const Wire& wire_for(std::string_view api) { return api_row(api).wire(); }

std::int64_t estimated_tokens(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes + 2) / 3);
}

std::string next_step(FailureKind kind) {
  switch (kind) {
    case FailureKind::kOverloaded:
    case FailureKind::kServerError:
      return "try again later, or name another model";
    case FailureKind::kRateLimited:
      return "use fewer writers at once, or raise the limits of the account";
    case FailureKind::kTimedOut:
      return "allow more time, or look whether the server is busy";
    case FailureKind::kCutStream:
    case FailureKind::kUnreachable:
      return "check the address, the network and whether the server runs";
    case FailureKind::kRefusal:
      return "check the request, or name another model";
    case FailureKind::kEmpty:
      return "ask again, or name another model";
    case FailureKind::kTruncated:
      return "raise max_tokens, or ask for less at once";
    case FailureKind::kBadRequest:
      return "check the model's options and the length of what is asked";
    case FailureKind::kAuth:
      return "check the key in the environment and the account's credit";
    case FailureKind::kUnknownModel:
      return "check the model's name and the address; the server lists its models under /models";
    case FailureKind::kGarbage:
      return "check that the address is that of this API, its /v1 included";
    case FailureKind::kBudget:
      return "raise the budget, or continue with the results so far";
    case FailureKind::kCancelled:
      return "";
  }
  return "";
}

Failure failure_of_error(int status, const std::string& type, const std::string& code,
                         const std::string& message) {
  FailureKind kind = kind_of_status(status);
  int number = 0;
  if (code.size() == 3 && code.find_first_not_of("0123456789") == std::string::npos) {
    number = std::stoi(code);
  }
  if (const auto named = kind_of_words(type, code)) {
    kind = *named;
  } else if (status == 200) {
    kind = number >= 400 ? kind_of_status(number) : FailureKind::kServerError;
  }
  if (status == 400 && kind == FailureKind::kBadRequest) {
    kind = kind_of_text(type, message).value_or(kind);
  }
  // A 404 that does not mention a model is a wrong address.
  if (status == 404 && !contains(message, "model")) {
    kind = type == "not_found_error" && message.empty() ? FailureKind::kUnknownModel
                                                        : FailureKind::kBadRequest;
  } else if (status == 404 || (number == 404 && status == 200)) {
    kind = FailureKind::kUnknownModel;
  }
  // The status overrides the words when they disagree on whether waiting helps.
  if (is(type, {"invalid_request_error"}) && worth_retrying(kind_of_status(status)) &&
      kind == FailureKind::kBadRequest) {
    kind = kind_of_status(status);
  }
  std::string text = status == 200 ? "the server reported an error within its reply"
                                   : "the server answered " + std::to_string(status);
  if (!type.empty()) text += " (" + shown(type) + ")";
  if (!message.empty()) text += ": " + shown(message);
  Failure result = failure(kind, std::move(text));
  result.status = status;
  return result;
}

Failure failure_of_status(int status, const std::string& body) {
  if (status >= 300 && status < 400) {
    Failure result =
        failure(FailureKind::kBadRequest,
                "the server answered " + std::to_string(status) +
                    ", a redirect, which is not followed since it would carry the key");
    result.next = "name the address that it leads to";
    result.status = status;
    return result;
  }
  const std::optional<Json> json = parse_foreign_json(body);
  if (json) {
    if (auto told = read_error(status, *json)) return *told;
    const std::string message = JsonReader(*json).text("message", JsonReader(*json).text("detail"));
    return failure_of_error(status, "", "", message);
  }
  return failure_of_error(status, "", "", body);
}

void ReplyReader::event(SseEvent&& event) {
  if (complete()) return;
  if (!wire_.read_event(event, &draft_)) garbage_ = true;
}

void ReplyReader::bytes(bool says_event_stream, std::string_view part) {
  if (says_event_stream) streaming_ = true;
  if (!streaming_) {
    body_ += part;
    return;
  }
  if (!sse_.feed(part, [this](SseEvent&& e) { event(std::move(e)); })) garbage_ = true;
}

// A truncated JSON body was most likely a reply.
bool ReplyReader::looks_paid() const {
  return !streaming_ && !draft_.ended && !draft_.failure && trim(body_).substr(0, 1) == "{";
}

void ReplyReader::estimate(std::size_t request_bytes) {
  if (looks_paid()) draft_.seen_bytes = static_cast<std::int64_t>(body_.size());
  // An error or ping alone implies no tokens.
  const bool began = draft_.input_told || draft_.seen_bytes > 0 || !draft_.stop.empty();
  if (!began || (draft_.input_told && draft_.output_told)) return;
  if (!draft_.input_told) draft_.usage.input = estimated_tokens(request_bytes);
  if (!draft_.output_told) {
    draft_.usage.output = std::max(draft_.usage.output,
                                   estimated_tokens(static_cast<std::size_t>(draft_.seen_bytes)));
  }
  draft_.usage.estimated = true;
}

ChatResult ReplyReader::judge() {
  if (draft_.failure) return tl::unexpected<Failure>(*draft_.failure);
  if (garbage_) {
    return tl::unexpected<Failure>(failure(
        FailureKind::kGarbage, body_.empty() ? "the server's stream is not of this API"
                                             : "the server's reply is not of this API: " +
                                                   shown(std::string_view(body_).substr(0, 200))));
  }
  if (draft_.stop == "refusal" || draft_.stop == "content_filter" || !draft_.refusal.empty()) {
    std::string message = "the model refused";
    if (!draft_.refusal.empty()) message += ": " + shown(draft_.refusal);
    return tl::unexpected<Failure>(failure(FailureKind::kRefusal, std::move(message)));
  }
  if (is(draft_.stop, {"max_tokens", "length", "model_context_window_exceeded"})) {
    Failure result = failure(FailureKind::kTruncated, "the reply was cut off by a limit of tokens");
    result.partial = printable(draft_.text);
    return tl::unexpected<Failure>(std::move(result));
  }
  if (trim(draft_.text).empty() && draft_.calls.empty()) {
    return tl::unexpected<Failure>(failure(FailureKind::kEmpty, "the model answered nothing"));
  }
  ChatReply reply;
  for (ToolCall& call : draft_.calls) {
    const std::optional<Json> arguments = parse_object(call.arguments);
    if (!arguments || call.name.empty()) {
      return tl::unexpected<Failure>(
          failure(FailureKind::kGarbage, "the model called the tool \"" + shown(call.name) +
                                             "\" with arguments that are not a JSON object"));
    }
    call.arguments = dump_json(*arguments);
    // Some servers give calls no ids; answers must refer to one.
    if (call.id.empty()) call.id = "call_" + std::to_string(reply.calls.size());
    reply.calls.push_back(std::move(call));
  }
  reply.text = std::move(draft_.text);
  reply.model = draft_.model;
  reply.usage = draft_.usage;
  return reply;
}

ChatResult ReplyReader::finish(bool cut, std::size_t request_bytes) {
  if (!streaming_ && !cut) {
    const std::string_view start = trim(body_);
    if (start.substr(0, 5) == "data:" || start.substr(0, 6) == "event:") {
      bytes(true, std::exchange(body_, {}) + "\n\n");  // a stream with the wrong content type
    } else if (!wire_.read_body(body_, &draft_)) {
      garbage_ = true;
    }
  }
  estimate(request_bytes);
  const bool whole = draft_.ended || !draft_.stop.empty();
  if (!whole && !draft_.failure && !garbage_) {
    return tl::unexpected<Failure>(
        failure(FailureKind::kCutStream, "the reply ended before it was complete, after " +
                                             std::to_string(draft_.seen_bytes) + " bytes of it"));
  }
  return judge();
}

}  // namespace kernelpro
