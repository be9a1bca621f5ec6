// SPDX-License-Identifier: Apache-2.0
#include "write/model/client.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "base/text.h"
#include "core/task/key.h"
#include "write/model/http.h"
#include "write/model/wire.h"

namespace kernelpro {
namespace {

constexpr std::size_t kMaxErrorBody = 64 << 10;  // of a reply other than 200
constexpr double kKnockS = 20;                   // a server that takes longer loads its model
constexpr double kKnockConnectS = 5;

class Collector : public HttpSink {
 public:
  explicit Collector(const Wire& wire) : reader(wire) {}
  void bytes(const HttpHead& head, std::string_view part) override {
    if (head.status == 200) {
      reader.bytes(contains(head.content_type, "text/event-stream"), part);
    } else if (error_body.size() < kMaxErrorBody) {
      error_body += part.substr(0, kMaxErrorBody - error_body.size());
    }
  }
  bool complete() const override { return reader.complete(); }

  ReplyReader reader;
  std::string error_body;
};

// State of one call across its attempts.
struct Call {
  const ChatRequest* request = nullptr;
  const CallOptions* options = nullptr;
  std::string body;
  double begin = 0;
  int attempts = 0;
  Usage wasted;
};

Failure failed(FailureKind kind, std::string message) {
  Failure failure;
  failure.kind = kind;
  failure.message = std::move(message);
  failure.next = next_step(kind);
  failure.retryable = worth_retrying(kind);
  return failure;
}

double chance() {
  thread_local std::mt19937_64 random{fresh_secret()};
  return std::uniform_real_distribution<double>(0, 1)(random);
}

class HttpClient : public ChatClient {
 public:
  HttpClient(ClientSettings settings, std::unique_ptr<HttpPool> pool)
      : settings_(std::move(settings)),
        wire_(wire_for(settings_.spec.api)),
        pool_(std::move(pool)) {}

  std::string name() const override { return settings_.spec.name; }
  ChatResult complete(const ChatRequest& request, const CallOptions& options) override;
  std::optional<Failure> knock() override;
  Counts counts() const override {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  struct Attempt {
    ChatResult result;
    std::optional<double> asked_wait;
  };
  ChatResult attempts(Call* call);
  std::optional<Failure> admit(const Call& call, bool first, Spend* worst) const;
  HttpRequest request_for(const Call& call, double left) const;
  Attempt attempt(Call* call, double left);
  ChatResult judge(const HttpResult& http, Collector* collector, const Call& call, double left);
  void paid(const Usage& usage, const Spend& worst);
  bool pause(double seconds, const CallOptions& options) const;
  std::optional<double> cost(const Usage& usage) const;
  ChatResult account(ChatResult result, const Call& call);
  void scrub_all(ChatResult* result) const;

  const ClientSettings settings_;
  const Wire& wire_;
  const std::unique_ptr<HttpPool> pool_;
  mutable std::mutex mutex_;
  Counts counts_;
};

std::optional<double> HttpClient::cost(const Usage& usage) const {
  if (!settings_.price) return std::nullopt;
  return cost_usd(*settings_.price, usage);
}

ChatResult HttpClient::complete(const ChatRequest& request, const CallOptions& options) {
  ChatRequest asked = request;
  const ModelSpec& spec = settings_.spec;
  if (!asked.temperature) asked.temperature = spec.temperature;
  if (spec.max_tokens) asked.max_tokens = *spec.max_tokens;
  Call call;
  call.request = &asked;
  call.options = &options;
  call.begin = real_clock().now_s();
  Result<std::string> body = wire_.encode(spec, asked);
  if (!body || asked.messages.empty() || asked.max_tokens < 1) {
    Failure failure = failed(FailureKind::kBadRequest, "a request needs a message and max_tokens");
    if (!body) {
      failure.message = body.error().message;
      failure.next = body.error().next;
    }
    return account(tl::unexpected<Failure>(std::move(failure)), call);
  }
  call.body = std::move(*body);
  return account(attempts(&call), call);
}

std::optional<Failure> HttpClient::knock() {
  ChatRequest nothing;
  nothing.max_tokens = 1;
  const Result<std::string> body = wire_.encode(settings_.spec, nothing);
  if (!body) return std::nullopt;
  const CallOptions options;
  Call call;
  call.request = &nothing;
  call.options = &options;
  call.body = *body;
  HttpRequest http = request_for(call, kKnockS);
  http.connect_timeout_s = std::min(settings_.connect_timeout_s, kKnockConnectS);
  Collector collector(wire_);
  ChatResult result = judge(pool_->post(http, collector), &collector, call, kKnockS);
  scrub_all(&result);
  if (result) return std::nullopt;
  const FailureKind kind = result.error().kind;
  const bool lasting = kind == FailureKind::kUnreachable || kind == FailureKind::kAuth ||
                       kind == FailureKind::kUnknownModel || result.error().status == 404;
  return lasting ? std::optional(std::move(result.error())) : std::nullopt;
}

std::optional<Failure> HttpClient::admit(const Call& call, bool first, Spend* worst) const {
  Budget* budget = settings_.budget;
  if (budget == nullptr) return std::nullopt;
  if (budget->limits().usd && !settings_.price) {
    Failure failure =
        failed(FailureKind::kBudget, "the price of " + settings_.spec.name +
                                         " is unknown, so a budget in dollars cannot be enforced");
    failure.next = "add the model to the price table (docs/models.md), or set a budget of tokens";
    return failure;
  }
  Usage most;
  most.input = estimated_tokens(call.body.size());
  most.output = call.request->max_tokens;
  worst->calls = first ? 1 : 0;
  worst->tokens = most.total();
  if (settings_.price) {
    Price price = *settings_.price;
    price.input = std::max({price.input, price.cache_read, price.cache_write});
    worst->usd = cost_usd(price, most);
  }
  const std::optional<std::string> refusal = budget->admit(*worst);
  if (!refusal) return std::nullopt;
  return failed(FailureKind::kBudget, *refusal);
}

void HttpClient::paid(const Usage& usage, const Spend& worst) {
  if (settings_.budget != nullptr) {
    settings_.budget->settle(worst, {usage.total(), cost(usage).value_or(0), worst.calls});
  }
  const std::lock_guard lock(mutex_);
  ++counts_.attempts;
  Usage& sum = usage.estimated ? counts_.estimated : counts_.reported;
  sum += usage;
  if (usage.estimated) ++counts_.estimated_attempts;
  if (usage.total() == 0) return;
  if (const auto usd = cost(usage)) {
    counts_.cost_usd += *usd;
  } else {
    counts_.cost_known = false;
  }
}

// True: cancelled meanwhile.
bool HttpClient::pause(double seconds, const CallOptions& options) const {
  if (settings_.pause) {
    settings_.pause(seconds);
    return options.cancelled && options.cancelled();
  }
  const double until = real_clock().now_s() + seconds;
  for (;;) {
    if (options.cancelled && options.cancelled()) return true;
    const double left = until - real_clock().now_s();
    if (left <= 0) return false;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.05)));
  }
}

ChatResult HttpClient::attempts(Call* call) {
  double waited = 0;  // nominal, even if a test's pause takes no time
  for (;;) {
    const double left = settings_.timeout_s - (real_clock().now_s() - call->begin) - waited;
    Spend worst;
    if (auto refusal = admit(*call, call->attempts == 0, &worst)) {
      return tl::unexpected<Failure>(std::move(*refusal));
    }
    Attempt now = attempt(call, left);
    const Usage usage = now.result ? now.result->usage : now.result.error().wasted;
    paid(usage, worst);
    if (now.result) return std::move(now.result);
    Failure& failure = now.result.error();
    call->wasted += usage;
    if (!failure.retryable || call->attempts >= settings_.retry.max_attempts) {
      return std::move(now.result);
    }
    const double wait = wait_before(settings_.retry, call->attempts + 1, now.asked_wait, chance());
    const double still = settings_.timeout_s - (real_clock().now_s() - call->begin) - waited;
    if (wait >= still) {
      failure.message +=
          "; the wait before another attempt (" + human_seconds(wait) + ") would pass the deadline";
      return std::move(now.result);
    }
    {
      const std::lock_guard lock(mutex_);
      ++counts_.retried[static_cast<std::size_t>(failure.kind)];
    }
    if (pause(wait, *call->options)) {
      return tl::unexpected<Failure>(
          failed(FailureKind::kCancelled, "cancelled while waiting for another attempt"));
    }
    if (settings_.pause) waited += wait;
  }
}

HttpRequest HttpClient::request_for(const Call& call, double left) const {
  HttpRequest http;
  http.url = settings_.spec.base_url + wire_.path();
  http.headers = wire_.headers(settings_.key);
  http.body = call.body;
  http.direct = settings_.spec.loopback();
  http.connect_timeout_s = std::min(settings_.connect_timeout_s, std::max(left, 0.001));
  http.stall_s = settings_.stall_s;
  http.timeout_s = std::max(left, 0.0);
  http.max_bytes = settings_.max_bytes;
  http.cancelled = call.options->cancelled;
  return http;
}

HttpClient::Attempt HttpClient::attempt(Call* call, double left) {
  const HttpRequest http = request_for(*call, left);
  Collector collector(wire_);
  ++call->attempts;
  const HttpResult done = pool_->post(http, collector);
  Attempt result{judge(done, &collector, *call, left), std::nullopt};
  if (done.head.status == 200) {
    // Counted even if the attempt gave nothing.
    if (!result.result) result.result.error().wasted = collector.reader.usage();
  } else {
    result.asked_wait = asked_wait(done.head.retry_after_ms, done.head.retry_after, done.head.date,
                                   static_cast<std::int64_t>(std::time(nullptr)));
  }
  scrub_all(&result.result);
  return result;
}

ChatResult HttpClient::judge(const HttpResult& http, Collector* collector, const Call& call,
                             double left) {
  const auto failure = [&](FailureKind kind, std::string message) {
    Failure result = failed(kind, std::move(message));
    result.status = http.head.status;
    return tl::unexpected<Failure>(std::move(result));
  };
  const std::string& where = settings_.spec.base_url;
  if (http.end == HttpEnd::kRefused || http.head.status == 0) {
    if (http.end == HttpEnd::kRefused || http.end == HttpEnd::kUnreachable) {
      auto result = failure(FailureKind::kUnreachable, where + ": " + http.detail);
      if (http.end == HttpEnd::kRefused) result.value().retryable = false;
      return result;
    }
  } else if (http.head.status != 200 && (http.end == HttpEnd::kDone || http.end == HttpEnd::kCut ||
                                         http.end == HttpEnd::kTooLarge)) {
    return tl::unexpected<Failure>(failure_of_status(http.head.status, collector->error_body));
  }
  ChatResult read = collector->reader.finish(http.end != HttpEnd::kDone, call.body.size());
  const bool cut = !read && read.error().kind == FailureKind::kCutStream;
  switch (http.end) {
    case HttpEnd::kCancelled:
      return failure(FailureKind::kCancelled, "cancelled while the model was writing");
    case HttpEnd::kTooLarge:
      return failure(
          FailureKind::kGarbage,
          "the answer is larger than " + human_bytes(static_cast<double>(settings_.max_bytes)));
    case HttpEnd::kStalled:
      // A reply that has ended needs no more bytes.
      if (!cut) break;
      return failure(FailureKind::kTimedOut,
                     where + " sent nothing for " + human_seconds(settings_.stall_s));
    case HttpEnd::kTimedOut: {
      if (!cut) break;
      auto result = failure(FailureKind::kTimedOut,
                            "no complete answer within " + human_seconds(settings_.timeout_s) +
                                ", of which this attempt had " + human_seconds(left));
      result.value().retryable = false;
      return result;
    }
    default:
      break;
  }
  if (!read) read.error().status = http.head.status;
  return read;
}

void HttpClient::scrub_all(ChatResult* result) const {
  const std::string& key = settings_.key;
  if (key.empty()) return;
  if (!*result) {
    Failure& failure = result->error();
    failure.message = scrub(failure.message, key);
    failure.partial = replace_all(failure.partial, key, "[key]");
    return;
  }
  // The model does not know the key; this guards against a server that echoes it.
  ChatReply& reply = **result;
  if (contains(reply.text, key)) reply.text = replace_all(reply.text, key, "[key]");
  reply.model = scrub(reply.model, key);
  for (ToolCall& call : reply.calls) {
    for (std::string* text : {&call.id, &call.name, &call.arguments}) {
      if (contains(*text, key)) *text = replace_all(*text, key, "[key]");
    }
  }
}

ChatResult HttpClient::account(ChatResult result, const Call& call) {
  if (result) {
    result->wasted = call.wasted;
    result->attempts = call.attempts;
    result->seconds = real_clock().now_s() - call.begin;
    Usage all = result->usage;
    all += call.wasted;
    result->cost_usd = cost(all);
  } else {
    result.error().attempts = call.attempts;
    result.error().wasted = call.wasted;
    result.error().cost_usd = cost(call.wasted);
  }
  const std::lock_guard lock(mutex_);
  ++counts_.calls;
  if (result) {
    ++counts_.replies;
  } else {
    ++counts_.failures[static_cast<std::size_t>(result.error().kind)];
  }
  return result;
}

}  // namespace

Result<std::unique_ptr<ChatClient>> make_client(const ClientSettings& settings) {
  KP_ASSIGN(auto pool, HttpPool::make());
  return std::make_unique<HttpClient>(settings, std::move(pool));
}

Result<ClientSettings> settings_for(std::string_view text) {
  ClientSettings settings;
  KP_ASSIGN(ModelSpec spec, parse_model_spec(text));
  KP_ASSIGN(std::string key, key_of(spec));
  KP_ASSIGN(const Prices prices, Prices::load());
  if (const Price* price = prices.find(spec.name)) settings.price = *price;
  settings.spec = std::move(spec);
  settings.key = std::move(key);
  return settings;
}

}  // namespace kernelpro
