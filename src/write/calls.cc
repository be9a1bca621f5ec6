// SPDX-License-Identifier: Apache-2.0
#include "write/calls.h"

#include <cstdio>

#include "base/json.h"
#include "base/text.h"

namespace kernelpro {

namespace {

std::string by_count(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return text;
}

}  // namespace

std::string usage_to_json(const CallUsage& usage, ModelRole role) {
  Json json = {{"role", model_role_name(role)},
               {"requests", usage.requests},
               {"attempts", usage.attempts},
               {"input", usage.tokens.input},
               {"cache_read", usage.tokens.cache_read},
               {"cache_written", usage.tokens.cache_written},
               {"output", usage.tokens.output},
               {"estimated", usage.tokens.estimated},
               {"cost_usd", usage.cost_usd},
               {"cost_known", usage.cost_known},
               {"seconds", usage.seconds}};
  if (!usage.tools.empty()) json["tools"] = usage.tools;
  return dump_json(json);
}

CallUsage usage_from_json(const std::string& text) {
  const Json json = parse_json(text).value_or(Json());
  const JsonReader reader(json);
  CallUsage usage;
  usage.requests = reader.integer("requests");
  usage.attempts = reader.integer("attempts");
  usage.tokens.input = reader.integer("input");
  usage.tokens.cache_read = reader.integer("cache_read");
  usage.tokens.cache_written = reader.integer("cache_written");
  usage.tokens.output = reader.integer("output");
  usage.tokens.estimated = reader.flag("estimated");
  usage.cost_usd = reader.real("cost_usd");
  usage.cost_known = reader.flag("cost_known", true);
  usage.seconds = reader.real("seconds");
  for (const auto& [name, count] : reader.object("tools").items()) {
    if (count.is_number_integer()) usage.tools[name] = count.get<int>();
  }
  return usage;
}

Spend spend_of(const std::vector<ModelCall>& calls) {
  Spend spend;
  for (const ModelCall& call : calls) {
    const CallUsage usage = usage_from_json(call.usage);
    spend.tokens += usage.tokens.total();
    spend.usd += usage.cost_usd;
    spend.calls += usage.requests;
  }
  return spend;
}

std::string spend_text(const Spend& spend) {
  std::string text = how_many(spend.calls, "request") + ", " + how_many(spend.tokens, "token");
  if (spend.usd <= 0) return text;
  char money[48];
  std::snprintf(money, sizeof money, ", $%.4f", spend.usd);
  return text + money;
}

std::string calls_text(const std::vector<ModelCall>& calls) {
  if (calls.empty()) return "";
  std::map<std::string, int> roles, failures, tools;
  int failed = 0;
  bool known = true;
  bool estimated = false;
  for (const ModelCall& call : calls) {
    ++roles[std::string(model_role_name(call.role))];
    if (call.outcome != CallOutcome::kReply) {
      ++failures[std::string(call_outcome_name(call.outcome))];
      ++failed;
    }
    const CallUsage usage = usage_from_json(call.usage);
    known = known && usage.cost_known;
    estimated = estimated || usage.tokens.estimated;
    for (const auto& [name, count] : usage.tools) tools[name] += count;
  }
  const Spend spend = spend_of(calls);
  char money[48];
  std::snprintf(money, sizeof money, "$%.4f", spend.usd);
  std::string text = how_many(calls.size(), "question") + " to models (" + by_count(roles) +
                     "): " + how_many(spend.calls, "request") + ", " +
                     how_many(spend.tokens, "token") + (estimated ? " (partly estimated)" : "") +
                     ", ";
  if (known) {
    text += money;
  } else {
    text += spend.usd > 0 ? std::string(money) + " and what has no known price" : "price unknown";
  }
  if (!tools.empty()) text += "; looked up: " + by_count(tools);
  if (failed > 0) text += "; " + std::to_string(failed) + " came to nothing: " + by_count(failures);
  return text;
}

}  // namespace kernelpro
