// SPDX-License-Identifier: Apache-2.0
// Anthropic's Messages API, version 2023-06-01.
#include "write/model/format.h"
#include "write/model/wire_json.h"

namespace kernelpro {
namespace {

const Json kCacheMark = {{"type", "ephemeral"}};

Result<Json> content_of(const ChatMessage& message) {
  Json blocks = Json::array();
  for (const ToolResult& result : message.results) {
    Json block = {{"type", "tool_result"}, {"tool_use_id", result.call_id}};
    block["content"] = result.text;
    if (result.failed) block["is_error"] = true;
    blocks.push_back(std::move(block));
  }
  if (!message.text.empty()) blocks.push_back({{"type", "text"}, {"text", message.text}});
  for (const ToolCall& call : message.calls) {
    std::optional<Json> input = parse_object(call.arguments);
    if (!input) {
      return fail(ErrorKind::kBadInput,
                  "the arguments of tool call " + call.id + " are not a JSON object",
                  "send tool calls back as the model wrote them");
    }
    Json block = {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}};
    block["input"] = std::move(*input);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

void read_usage(const Json& usage, Draft* draft) {
  if (!usage.is_object()) return;
  Usage& u = draft->usage;
  u.input = token_count(usage, "input_tokens", u.input);
  u.cache_written = token_count(usage, "cache_creation_input_tokens", u.cache_written);
  u.cache_read = token_count(usage, "cache_read_input_tokens", u.cache_read);
  u.output = token_count(usage, "output_tokens", u.output);
  if (usage.contains("input_tokens")) draft->input_told = true;
}

// A block of a whole body, or the start of a streamed one.
void read_block(const Json& block, bool whole, Draft* draft) {
  const JsonReader reader(block);
  const std::string type = reader.text("type");
  if (type == "text") {
    const std::string text = reader.text("text");
    draft->text += text;
    draft->seen_bytes += static_cast<std::int64_t>(text.size());
  } else if (type == "tool_use") {
    ToolCall call{reader.text("id"), reader.text("name"), ""};
    const Json* input = reader.member("input");
    if (input != nullptr && (whole || !input->empty())) call.arguments = dump_json(*input);
    draft->seen_bytes += static_cast<std::int64_t>(call.arguments.size());
    draft->calls.push_back(std::move(call));
  }
}

class AnthropicWire : public Wire {
 public:
  std::string path() const override { return "/v1/messages"; }

  std::vector<std::string> headers(const std::string& key) const override {
    std::vector<std::string> result = {"content-type: application/json",
                                       "accept: text/event-stream",
                                       "anthropic-version: 2023-06-01"};
    if (!key.empty()) result.push_back("x-api-key: " + key);
    return result;
  }

  Result<std::string> encode(const ModelSpec& spec, const ChatRequest& request) const override {
    Json body = {{"model", spec.model}, {"max_tokens", request.max_tokens}, {"stream", true}};
    if (!request.system.empty()) {
      Json block = {{"type", "text"}, {"text", request.system}, {"cache_control", kCacheMark}};
      body["system"] = Json::array({std::move(block)});
    }
    Json messages = Json::array();
    for (std::size_t i = 0; i < request.messages.size(); ++i) {
      KP_ASSIGN(Json content, content_of(request.messages[i]));
      if (static_cast<int>(i) + 1 == request.stable_messages && !content.empty()) {
        content.back()["cache_control"] = kCacheMark;
      }
      const bool user = request.messages[i].role == Speaker::kUser;
      Json message = {{"role", user ? "user" : "assistant"}};
      message["content"] = std::move(content);
      messages.push_back(std::move(message));
    }
    body["messages"] = std::move(messages);
    for (const ToolSpec& tool : request.tools) {
      const std::optional<Json> schema = parse_object(tool.schema);
      if (!schema) {
        return fail(ErrorKind::kBadInput,
                    "the schema of tool " + tool.name + " is not a JSON object",
                    "write it as JSON Schema");
      }
      body["tools"].push_back(
          {{"name", tool.name}, {"description", tool.description}, {"input_schema", *schema}});
    }
    // Without a system text, the tools are the stable prefix.
    if (request.system.empty() && !request.tools.empty()) {
      body["tools"].back()["cache_control"] = kCacheMark;
    }
    if (request.temperature) body["temperature"] = *request.temperature;
    return dump_json(body);
  }

  bool read_event(const SseEvent& event, Draft* draft) const override {
    const std::optional<Json> json = parse_foreign_json(event.data);
    if (!json || !json->is_object()) return false;
    const JsonReader reader(*json);
    const std::string type = reader.text("type", event.type);
    if (type == "message_start") {
      const JsonReader message(reader.object("message"));
      draft->model = message.text("model");
      read_usage(message.object("usage"), draft);
    } else if (type == "content_block_start") {
      // Blocks are sequential; deltas belong to the latest.
      read_block(reader.object("content_block"), false, draft);
    } else if (type == "content_block_delta") {
      return read_delta(reader.object("delta"), draft);
    } else if (type == "message_delta") {
      draft->stop = JsonReader(reader.object("delta")).text("stop_reason", draft->stop);
      read_usage(reader.object("usage"), draft);
      draft->output_told = draft->output_told || reader.object("usage").contains("output_tokens");
    } else if (type == "message_stop") {
      draft->ended = true;
    } else if (type == "error") {
      draft->failure = read_error(200, *json);
      return draft->failure.has_value();
    }
    return true;  // pings and additions of later versions
  }

  bool read_body(const std::string& text, Draft* draft) const override {
    const std::optional<Json> json = parse_foreign_json(text);
    if (!json || !json->is_object()) return false;
    draft->failure = read_error(200, *json);
    if (draft->failure) return true;
    const JsonReader reader(*json);
    if (reader.text("type") != "message") return false;
    draft->model = reader.text("model");
    for (const Json& block : reader.array("content")) read_block(block, true, draft);
    draft->stop = reader.text("stop_reason");
    read_usage(reader.object("usage"), draft);
    draft->output_told = reader.object("usage").contains("output_tokens");
    draft->ended = true;
    return true;
  }

 private:
  static bool read_delta(const Json& delta, Draft* draft) {
    const JsonReader reader(delta);
    const std::string type = reader.text("type");
    std::string part;
    if (type == "text_delta") {
      part = reader.text("text");
      draft->text += part;
    } else if (type == "input_json_delta") {
      part = reader.text("partial_json");
      if (draft->calls.empty()) return false;
      draft->calls.back().arguments += part;
    } else if (type == "thinking_delta") {
      part = reader.text("thinking");  // paid, not stored
    }
    draft->seen_bytes += static_cast<std::int64_t>(part.size());
    return true;
  }
};

}  // namespace

const Wire& anthropic_wire() {
  static const AnthropicWire wire;
  return wire;
}

}  // namespace kernelpro
