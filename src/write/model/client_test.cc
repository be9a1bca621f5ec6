// SPDX-License-Identifier: Apache-2.0
// Both clients against a real server on real sockets (bench/model/server.py), act by act.
#include "write/model/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "base/testing.h"
#include "base/text.h"
#include "write/model/failure.h"
#include "write/model/local_server.h"

namespace kernelpro {
namespace {

constexpr const char* kKey = "sk-test-0123456789abcdefghij";
constexpr const char* kWords = "Use wider loads and fewer barriers.";

const LocalServer& server() {
  static const Result<LocalServer> started = LocalServer::start(KERNELPRO_SOURCE_DIR);
  if (!started) throw Fatal(started.error());
  return *started;
}

ChatRequest question() {
  ChatRequest request;
  request.system = "You write kernels.";
  request.messages.push_back({Speaker::kUser, "Make it faster.", {}, {}});
  request.max_tokens = 100;
  return request;
}

class Client : public ::testing::TestWithParam<const char*> {
 protected:
  // A client whose requests get `acts`, and whose waits are recorded instead of slept.
  ClientSettings settings(const std::string& acts) {
    id_ = acts.substr(0, acts.find(',')) + std::to_string(++next_id_);
    ClientSettings result;
    result.spec.api = GetParam();
    result.spec.base_url = server().base(id_, acts);
    result.spec.model = "test-model";
    result.spec.name = "test:test-model";
    result.key = kKey;
    // Short only where the server stalls on purpose: a busy machine is not an error.
    result.stall_s = contains(acts, "stall") || contains(acts, "hang") ? 0.3 : 10;
    result.timeout_s = 100;
    result.pause = [this](double seconds) { waits_.push_back(seconds); };
    return result;
  }
  ChatResult ask(const ClientSettings& settings, const ChatRequest& request = question(),
                 const CallOptions& options = {}) {
    client_ = std::move(*make_client(settings));
    return client_->complete(request, options);
  }
  ChatResult ask(const std::string& acts) { return ask(settings(acts)); }
  Json last() const { return server().ask("/last/" + id_); }
  bool anthropic() const { return GetParam() == std::string("anthropic"); }

  // The failure's kind, after checks that hold for every failure.
  std::string_view kind(const ChatResult& result) {
    if (result) return "reply";
    const Failure& failure = result.error();
    EXPECT_FALSE(failure.message.empty());
    EXPECT_FALSE(contains(failure.text() + failure.partial, std::string(kKey).substr(0, 12)))
        << failure.text();
    const Counts counts = client_->counts();
    EXPECT_EQ(counts.calls, counts.replies + counts.failed());
    EXPECT_EQ(counts.failures[static_cast<std::size_t>(failure.kind)], 1);
    return failure_name(failure.kind);
  }

  std::unique_ptr<ChatClient> client_;
  std::vector<double> waits_;
  std::string id_;
  static inline int next_id_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Apis, Client, ::testing::Values("anthropic", "openai"),
                         [](const auto& api) { return std::string(api.param); });

TEST_P(Client, AKnockFindsWhatEveryCallWouldMeet) {
  const auto knock = [&](const std::string& acts) {
    client_ = std::move(*make_client(settings(acts)));
    auto failure = client_->knock();
    EXPECT_EQ(client_->counts().calls, 0);
    EXPECT_TRUE(!failure || !contains(failure->text(), std::string(kKey).substr(0, 12)));
    return failure ? std::string(failure_name(failure->kind)) : "nothing";
  };
  EXPECT_EQ(knock("ok"), "nothing");
  EXPECT_EQ(knock("503,ok"), "nothing") << "it may be back by then";
  EXPECT_EQ(knock("401"), "auth");
  EXPECT_EQ(knock("404"), "unknown-model");
  EXPECT_EQ(knock("404path"), "bad-request") << "no API at this address";
  ClientSettings nobody = settings("ok");
  nobody.spec.base_url = "http://127.0.0.1:1";
  client_ = std::move(*make_client(nobody));
  const auto failure = client_->knock();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, FailureKind::kUnreachable);
}

TEST_P(Client, EveryFormOfAReply) {
  for (const char* act : {"ok", "json", "crlf", "cr", "bytes", "misnamed", "lazy", "nodone"}) {
    const ChatResult result = ask(act);
    ASSERT_TRUE(result) << act << ": " << result.error().text();
    EXPECT_EQ(result->text, kWords) << act;
    EXPECT_EQ(result->model, "test-model");
    EXPECT_EQ(result->attempts, 1);
    // Without its end, OpenAI's stream has no usage.
    const bool estimated = std::string(act) == "nodone" && !anthropic();
    EXPECT_EQ(result->usage.estimated, estimated) << act;
    EXPECT_TRUE(estimated || result->usage.output == 6) << act;
    EXPECT_GT(result->usage.input, 10);
    EXPECT_EQ(last()["turns"], 1);
  }
}

TEST_P(Client, SendsWhatTheApiDocuments) {
  ChatRequest request = question();
  request.messages.push_back(
      {Speaker::kAssistant, "Looking.", {{"c1", "measure", R"({"a":1})"}}, {}});
  request.messages.push_back({Speaker::kUser, "Go on.", {}, {{"c1", "12 us", false}}});
  request.tools.push_back({"measure", "Times a kernel.", R"({"type":"object"})"});
  request.temperature = 0.25;
  request.stable_messages = 2;
  ASSERT_TRUE(ask(settings("ok"), request));
  const Json sent = last();
  const Json& body = sent["body"];
  EXPECT_EQ(body["model"], "test-model");
  EXPECT_EQ(body["max_tokens"], 100);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["temperature"], 0.25);
  const Json& messages = body["messages"];
  if (anthropic()) {
    EXPECT_EQ(sent["path"], "/v1/messages");
    EXPECT_EQ(sent["headers"]["x-api-key"], kKey);
    EXPECT_EQ(sent["headers"]["anthropic-version"], "2023-06-01");
    EXPECT_EQ(body["system"][0]["cache_control"]["type"], "ephemeral");
    ASSERT_EQ(messages.size(), 3u);
    EXPECT_EQ(messages[1]["content"][1]["input"]["a"], 1);
    EXPECT_EQ(messages[1]["content"][1]["cache_control"]["type"], "ephemeral");
    EXPECT_FALSE(messages[0]["content"][0].contains("cache_control"));
    EXPECT_EQ(messages[2]["content"][0]["type"], "tool_result");
    EXPECT_EQ(messages[2]["content"][0]["tool_use_id"], "c1");
    EXPECT_EQ(body["tools"][0]["input_schema"]["type"], "object");
  } else {
    EXPECT_EQ(sent["path"], "/chat/completions");
    EXPECT_EQ(sent["headers"]["authorization"], std::string("Bearer ") + kKey);
    EXPECT_EQ(body["stream_options"]["include_usage"], true);
    ASSERT_EQ(messages.size(), 5u);
    EXPECT_EQ(messages[0]["role"], "system");
    EXPECT_EQ(messages[2]["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
    EXPECT_EQ(messages[3]["role"], "tool");
    EXPECT_EQ(messages[3]["tool_call_id"], "c1");
    EXPECT_EQ(body["tools"][0]["function"]["parameters"]["type"], "object");
  }
}

TEST_P(Client, OptionsOfTheSpecAndNoKey) {
  ClientSettings plain = settings("ok");
  plain.key.clear();
  plain.spec.temperature = 0.5;
  plain.spec.max_tokens = 7;
  ASSERT_TRUE(ask(plain));
  const Json sent = last();
  EXPECT_EQ(sent["body"]["temperature"], 0.5);
  EXPECT_EQ(sent["body"]["max_tokens"], 7);
  EXPECT_FALSE(sent["headers"].contains("x-api-key"));
  EXPECT_FALSE(sent["headers"].contains("authorization"));
}

TEST_P(Client, ToolCalls) {
  const ChatResult one = ask("tools");
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_EQ(one->text, "Look.");
  ASSERT_EQ(one->calls.size(), 1u);
  const ChatResult two = ask("tools2");
  ASSERT_TRUE(two) << two.error().text();
  ASSERT_EQ(two->calls.size(), 2u);
  EXPECT_EQ(two->calls[0].id, "call_a");
  EXPECT_EQ(two->calls[0].name, "measure");
  EXPECT_EQ(parse_json(two->calls[0].arguments), Json({{"kernel", "softmax"}, {"tile", 32}}));
  EXPECT_EQ(two->calls[1].name, "diagnose");
  EXPECT_EQ(two->calls[1].arguments, "{}");
  EXPECT_EQ(kind(ask("toolbad")), "garbage");
}

TEST_P(Client, CachedTokensAreNotCountedTwice) {
  const ChatResult result = ask("cache");
  ASSERT_TRUE(result);
  const Usage& usage = result->usage;
  const std::int64_t whole = usage.input + usage.cache_read + usage.cache_written;
  EXPECT_EQ(usage.cache_read, whole / 2);
  EXPECT_EQ(usage.cache_written, whole / 4);
  EXPECT_GT(usage.input, 0);
}

TEST_P(Client, FaultsThatPassAreRetried) {
  for (const char* act :
       {"408", "409", "429", "500", "502", "503", "504", "529", "cut", "cut0", "cutbody", "stall",
        "hang", "drop", "error200", "error200json", "error200late"}) {
    const ChatResult result = ask(std::string(act) + ",ok");
    ASSERT_TRUE(result) << act << ": " << result.error().text();
    EXPECT_EQ(result->text, kWords) << act;
    EXPECT_EQ(result->attempts, 2) << act;
    EXPECT_EQ(client_->counts().attempts, 2) << act;
  }
  EXPECT_EQ(waits_.size(), 17u);
}

TEST_P(Client, FaultsThatStayAreNot) {
  const std::pair<const char*, const char*> acts[] = {{"400", "bad-request"},
                                                      {"401", "auth"},
                                                      {"403", "auth"},
                                                      {"404", "unknown-model"},
                                                      {"404path", "bad-request"},
                                                      {"413", "bad-request"},
                                                      {"quota", "auth"},
                                                      {"refusal", "refusal"},
                                                      {"empty", "empty"},
                                                      {"length", "truncated"},
                                                      {"html", "garbage"},
                                                      {"halfjson", "garbage"},
                                                      {"garbage", "garbage"},
                                                      {"deep", "garbage"},
                                                      {"redirect", "bad-request"}};
  for (const auto& [act, expected] : acts) {
    const ChatResult result = ask(std::string(act) + ",ok");
    EXPECT_EQ(kind(result), expected) << act;
    ASSERT_FALSE(result);
    EXPECT_FALSE(result.error().next.empty()) << act;
    EXPECT_EQ(result.error().attempts, 1) << act;
  }
  EXPECT_TRUE(waits_.empty());
  EXPECT_EQ(ask("length").error().partial, kWords);
}

TEST_P(Client, RetriesEnd) {
  for (const auto& [act, expected] : {std::pair{"529", "overloaded"},
                                      {"500", "server-error"},
                                      {"429", "rate-limited"},
                                      {"cut", "cut-stream"},
                                      {"drop", "unreachable"},
                                      {"stall", "timed-out"}}) {
    ClientSettings few = settings(act);
    few.retry.max_attempts = 3;
    const ChatResult result = ask(few);
    EXPECT_EQ(kind(result), expected);
    EXPECT_EQ(result.error().attempts, 3);
    EXPECT_EQ(last()["turns"].get<int>(), 3) << act;
    const Counts counts = client_->counts();
    EXPECT_EQ(counts.retried[static_cast<std::size_t>(result.error().kind)], 2);
  }
}

TEST_P(Client, TheServerSaysHowLongToWait) {
  ASSERT_TRUE(ask("429-2,429ms-250,429date-9,ok"));
  ASSERT_EQ(waits_.size(), 3u);
  EXPECT_GE(waits_[0], 2);
  EXPECT_LE(waits_[0], 2.2);
  EXPECT_GE(waits_[1], 0.25);
  EXPECT_LE(waits_[1], 0.275);
  EXPECT_GE(waits_[2], 1);  // less the time that the answer took
  EXPECT_LE(waits_[2], 11);
  // Longer than the call may take: fails at once.
  const ChatResult late = ask("429-101,ok");
  EXPECT_EQ(kind(late), "rate-limited");
  EXPECT_TRUE(contains(late.error().message, "deadline")) << late.error().message;
  EXPECT_EQ(waits_.size(), 3u);
}

TEST_P(Client, RealWaitsAreWaited) {
  ClientSettings real = settings("429ms-120,ok");
  real.pause = {};
  const ChatResult result = ask(real);
  ASSERT_TRUE(result);
  EXPECT_GE(result->seconds, 0.12);
}

TEST_P(Client, WhatACutStreamCostIsCountedAndFlagged) {
  ClientSettings priced = settings("cut,ok");
  priced.price = Price{"test:", 1, 10, 0.1, 1.25, ""};
  const ChatResult result = ask(priced);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->usage.estimated);
  EXPECT_TRUE(result->wasted.estimated);
  EXPECT_GT(result->wasted.input, 0);
  EXPECT_GT(result->wasted.output, 0);
  const Counts counts = client_->counts();
  EXPECT_EQ(counts.estimated_attempts, 1);
  EXPECT_EQ(counts.reported, result->usage);
  EXPECT_EQ(counts.estimated, result->wasted);
  Usage all = result->usage;
  all += result->wasted;
  EXPECT_DOUBLE_EQ(*result->cost_usd, cost_usd(*priced.price, all));
  EXPECT_DOUBLE_EQ(counts.cost_usd, *result->cost_usd);
  EXPECT_TRUE(counts.cost_known);
  ASSERT_TRUE(ask("ok"));
  EXPECT_FALSE(client_->counts().cost_known);
}

TEST_P(Client, TheKeyIsInNoAnswer) {
  const ChatResult refused = ask("401");
  EXPECT_EQ(kind(refused), "auth");
  EXPECT_TRUE(contains(refused.error().message, "[key]")) << refused.error().message;
  const ChatResult echo = ask("echo");
  ASSERT_TRUE(echo);
  EXPECT_EQ(echo->text, "the key is [key]");
}

TEST_P(Client, InvalidUtf8CostsACharacter) {
  const ChatResult result = ask("badutf8");
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->text, "Use wider l??s and fewer barriers.");
}

TEST_P(Client, HugeAnswersAreBounded) {
  for (const char* act : {"huge-line", "huge-events"}) {
    const ChatResult result = ask(act);
    EXPECT_EQ(kind(result), "garbage") << act;
    EXPECT_EQ(result.error().attempts, 1);
  }
}

TEST_P(Client, CancelledWithinAReplyAndWithinAWait) {
  bool began = false;
  CallOptions options;
  // Polled between reads: what was sent before one poll has been read by the next.
  options.cancelled = [&] { return std::exchange(began, last().contains("began")); };
  const ChatResult within = ask(settings("slow"), question(), options);
  EXPECT_EQ(kind(within), "cancelled");
  EXPECT_TRUE(within.error().wasted.estimated);
  std::atomic<bool> stop{false};
  options.cancelled = [&] { return stop.load(); };
  ClientSettings real = settings("429-90,ok");
  real.pause = {};
  std::thread other([&] {
    eventually([&] { return !last().is_null(); });
    stop = true;
  });
  // If the wait were not cut short, the answer would be "ok".
  EXPECT_EQ(kind(ask(real, question(), options)), "cancelled");
  other.join();
}

TEST_P(Client, DeadlineHoldsForAllAttempts) {
  ClientSettings brief = settings("slow");
  brief.timeout_s = 0.3;
  const ChatResult result = ask(brief);
  EXPECT_EQ(kind(result), "timed-out");  // the whole answer takes seconds, and is right
  EXPECT_EQ(result.error().attempts, 1);
}

TEST_P(Client, NobodyListens) {
  ClientSettings nowhere = settings("ok");
  nowhere.spec.base_url = "http://127.0.0.1:1/v1";
  nowhere.retry.max_attempts = 2;
  const ChatResult result = ask(nowhere);
  EXPECT_EQ(kind(result), "unreachable");
  EXPECT_EQ(result.error().attempts, 2);
}

TEST_P(Client, BudgetsEndCalls) {
  Budget calls({std::nullopt, std::nullopt, 1});
  ClientSettings settings_ = settings("ok");
  settings_.budget = &calls;
  ASSERT_TRUE(ask(settings_));
  EXPECT_EQ(kind(ask(settings_)), "budget");
  EXPECT_EQ(last()["turns"], 1);
  Budget tokens({150, std::nullopt, std::nullopt});
  settings_.budget = &tokens;
  EXPECT_EQ(kind(ask(settings_)), "budget");  // the request and 100 tokens are more
  Budget money({std::nullopt, 1.0, std::nullopt});
  settings_.budget = &money;
  const ChatResult unknown = ask(settings_);
  EXPECT_EQ(kind(unknown), "budget");
  EXPECT_TRUE(contains(unknown.error().message, "unknown"));
  settings_.price = Price{"test:", 3, 15, 0.3, 3.75, ""};
  const ChatResult paid = ask(settings_);
  ASSERT_TRUE(paid);
  EXPECT_DOUBLE_EQ(money.spent().usd, *paid->cost_usd);
  EXPECT_EQ(money.spent().tokens, paid->usage.total());
}

TEST_P(Client, BadRequestsAreNotSent) {
  ChatRequest request = question();
  request.tools.push_back({"t", "", "not json"});
  EXPECT_EQ(kind(ask(settings("ok"), request)), "bad-request");
  EXPECT_EQ(kind(ask(settings("ok"), ChatRequest())), "bad-request");
  EXPECT_TRUE(last().is_null());
}

// Gateways look at the model's name and the key before anything else, and answer both by 400.
TEST(Failures, WhatA400IsAbout) {
  const auto kind = [](const std::string& type, const std::string& message) {
    return failure_of_error(400, type, "", message).kind;
  };
  EXPECT_EQ(kind("", "Invalid model name passed in model=wrong. Call `/v1/models`"),
            FailureKind::kUnknownModel);
  EXPECT_EQ(kind("invalid_request_error", "The model `x` does not exist"),
            FailureKind::kUnknownModel);
  EXPECT_EQ(kind("no_db_connection", "No connected db."), FailureKind::kAuth);
  EXPECT_EQ(kind("", "Incorrect API key provided"), FailureKind::kAuth);
  EXPECT_EQ(kind("invalid_request_error", "messages: at least one message is required"),
            FailureKind::kBadRequest);
  EXPECT_EQ(kind("", "the model supports at most 8192 tokens"), FailureKind::kBadRequest);
}

}  // namespace
}  // namespace kernelpro
