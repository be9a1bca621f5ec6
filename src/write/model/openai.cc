// SPDX-License-Identifier: Apache-2.0
// OpenAI's chat API, which vLLM, Ollama, llama.cpp and OpenRouter also serve.
#include <algorithm>

#include "write/model/format.h"
#include "write/model/wire_json.h"

namespace kernelpro {
namespace {

constexpr std::int64_t kMaxCalls = 1024;  // of one reply

void add_messages(const ChatMessage& message, Json* messages) {
  for (const ToolResult& result : message.results) {
    // This API cannot mark a tool as failed.
    messages->push_back({{"role", "tool"},
                         {"tool_call_id", result.call_id},
                         {"content", (result.failed ? "error: " : "") + result.text}});
  }
  if (message.role == Speaker::kUser) {
    if (!message.text.empty() || message.results.empty()) {
      messages->push_back({{"role", "user"}, {"content", message.text}});
    }
    return;
  }
  Json json = {{"role", "assistant"}};
  json["content"] = message.text.empty() && !message.calls.empty() ? Json() : Json(message.text);
  for (const ToolCall& call : message.calls) {
    Json function = {{"name", call.name}, {"arguments", call.arguments}};
    json["tool_calls"].push_back(
        {{"id", call.id}, {"type", "function"}, {"function", std::move(function)}});
  }
  messages->push_back(std::move(json));
}

void read_usage(const Json& json, Draft* draft) {
  const Json& usage = JsonReader(json).object("usage");
  if (!usage.contains("prompt_tokens") && !usage.contains("completion_tokens")) return;
  const Json& details = JsonReader(usage).object("prompt_tokens_details");
  Usage& u = draft->usage;
  const std::int64_t prompt = token_count(usage, "prompt_tokens");
  // Here the input count includes the cache's part.
  u.cache_read = std::min(prompt, token_count(details, "cached_tokens"));
  u.cache_written = std::min(prompt - u.cache_read, token_count(details, "cache_write_tokens"));
  u.input = prompt - u.cache_read - u.cache_written;
  u.output = token_count(usage, "completion_tokens");
  draft->input_told = usage.contains("prompt_tokens");
  draft->output_told = usage.contains("completion_tokens");
}

// Parts of calls carry the call's index; a server that omits it sends whole calls.
bool read_calls(const Json& calls, Draft* draft) {
  for (const Json& part : calls) {
    const JsonReader reader(part);
    const JsonReader function(reader.object("function"));
    const std::int64_t next = static_cast<std::int64_t>(draft->calls.size());
    const std::int64_t index = reader.integer("index", next);
    if (index < 0 || index > next || index >= kMaxCalls) return false;
    if (index == next) draft->calls.push_back({"", "", ""});
    ToolCall& call = draft->calls[static_cast<std::size_t>(index)];
    if (call.id.empty()) call.id = reader.text("id");
    if (call.name.empty()) call.name = function.text("name");
    const Json* arguments = function.member("arguments");
    std::string text;
    if (arguments != nullptr) {
      // Some servers send the object instead of its text.
      if (arguments->is_string()) text = arguments->get<std::string>();
      if (arguments->is_object()) text = dump_json(*arguments);
    }
    call.arguments += text;
    draft->seen_bytes += static_cast<std::int64_t>(text.size());
  }
  return true;
}

// A whole message or a delta: both have the same members.
bool read_message(const Json& json, Draft* draft) {
  const JsonReader reader(json);
  const std::string text = reader.text("content");
  const std::string refusal = reader.text("refusal");
  draft->text += text;
  draft->refusal += refusal;
  draft->seen_bytes += static_cast<std::int64_t>(
      text.size() + refusal.size() +
      // Reasoning, under the servers' different names: paid, not stored.
      std::max(reader.text("reasoning_content").size(), reader.text("reasoning").size()));
  return read_calls(reader.array("tool_calls"), draft);
}

bool read_choice(const Json& json, const char* member, Draft* draft) {
  const Json& choices = JsonReader(json).array("choices");
  if (choices.empty()) return true;  // the chunk with the usage
  const JsonReader choice(choices.front());
  if (!read_message(choice.object(member), draft)) return false;
  draft->stop = choice.text("finish_reason", draft->stop);
  return true;
}

class OpenAiWire : public Wire {
 public:
  std::string path() const override { return "/chat/completions"; }

  std::vector<std::string> headers(const std::string& key) const override {
    std::vector<std::string> result = {"content-type: application/json",
                                       "accept: text/event-stream"};
    if (!key.empty()) result.push_back("authorization: Bearer " + key);
    return result;
  }

  Result<std::string> encode(const ModelSpec& spec, const ChatRequest& request) const override {
    Json body = {{"model", spec.model}, {"stream", true}};
    body["stream_options"] = {{"include_usage", true}};
    // OpenAI's newer models reject the old name; other servers do not know the new one.
    body[spec.first_hand() ? "max_completion_tokens" : "max_tokens"] = request.max_tokens;
    Json messages = Json::array();
    if (!request.system.empty()) {
      messages.push_back({{"role", "system"}, {"content", request.system}});
    }
    for (const ChatMessage& message : request.messages) add_messages(message, &messages);
    body["messages"] = std::move(messages);
    for (const ToolSpec& tool : request.tools) {
      const std::optional<Json> schema = parse_object(tool.schema);
      if (!schema) {
        return fail(ErrorKind::kBadInput,
                    "the schema of tool " + tool.name + " is not a JSON object",
                    "write it as JSON Schema");
      }
      Json function = {{"name", tool.name}, {"description", tool.description}};
      function["parameters"] = *schema;
      body["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    if (request.temperature) body["temperature"] = *request.temperature;
    return dump_json(body);
  }

  bool read_event(const SseEvent& event, Draft* draft) const override {
    if (event.data == "[DONE]") {
      draft->ended = true;
      return true;
    }
    const std::optional<Json> json = parse_foreign_json(event.data);
    if (!json || !json->is_object()) return false;
    draft->failure = read_error(200, *json);
    if (draft->failure) return true;
    if (draft->model.empty()) draft->model = JsonReader(*json).text("model");
    read_usage(*json, draft);
    return read_choice(*json, "delta", draft);
  }

  bool read_body(const std::string& text, Draft* draft) const override {
    const std::optional<Json> json = parse_foreign_json(text);
    if (!json || !json->is_object()) return false;
    draft->failure = read_error(200, *json);
    if (draft->failure) return true;
    if (JsonReader(*json).array("choices").empty()) return false;
    draft->model = JsonReader(*json).text("model");
    read_usage(*json, draft);
    draft->ended = true;
    return read_choice(*json, "message", draft);
  }
};

}  // namespace

const Wire& openai_wire() {
  static const OpenAiWire wire;
  return wire;
}

}  // namespace kernelpro
