// SPDX-License-Identifier: Apache-2.0
// Decisions before a byte is sent: specs, keys, prices, budgets, waits.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "write/model/budget.h"
#include "write/model/prices.h"
#include "write/model/retry.h"
#include "write/model/spec.h"

namespace kernelpro {
namespace {

// Sets an environment variable for the object's lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  bool had_ = false;
  std::string before_;
};

TEST(Spec, WhatUsersWrite) {
  const auto claude = parse_model_spec("anthropic:some-model,temperature=0.5,max_tokens=100");
  ASSERT_TRUE(claude) << claude.error().text();
  EXPECT_EQ(claude->api, "anthropic");
  EXPECT_EQ(claude->base_url, "https://api.anthropic.com");
  EXPECT_EQ(claude->model, "some-model");
  EXPECT_EQ(claude->name, "anthropic:some-model");
  EXPECT_EQ(claude->temperature, 0.5);
  EXPECT_EQ(claude->max_tokens, 100);
  const auto local = parse_model_spec("http://localhost:8000/v1/#org/model:7b");
  ASSERT_TRUE(local);
  EXPECT_EQ(local->api, "openai");
  EXPECT_EQ(local->base_url, "http://localhost:8000/v1");
  EXPECT_EQ(local->model, "org/model:7b");
  EXPECT_TRUE(local->loopback());
  EXPECT_FALSE(local->first_hand());
  const auto gateway = parse_model_spec("anthropic:https://gateway.example#m");
  ASSERT_TRUE(gateway);
  EXPECT_EQ(gateway->api, "anthropic");
  EXPECT_STREQ(key_variable(*gateway), "KERNELPRO_API_KEY");
  EXPECT_STREQ(key_variable(*claude), "ANTHROPIC_API_KEY");
  EXPECT_STREQ(key_variable(*parse_model_spec("openai:m")), "OPENAI_API_KEY");
}

TEST(Spec, WhatIsRefused) {
  for (const char* text :
       {"", "gpt", "anthropic:", "openai: ", "http://host/v1", "http://#m", "http://host#",
        "ftp://host#m", "http://user:secret@host/v1#m", "http://host/v1?key=1#m",
        "openai:m,temperature=hot", "openai:m,temperature=3", "openai:m,temperature=nan",
        "openai:m,max_tokens=0", "openai:m,max_tokens=5x", "openai:m,colour=red",
        "openai:two words", "http://ho st#m"}) {
    const auto spec = parse_model_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().kind, ErrorKind::kBadInput);
    EXPECT_FALSE(spec.error().next.empty());
    EXPECT_FALSE(contains(spec.error().text(), "secret")) << spec.error().text();
  }
}

TEST(Spec, OnlyThisMachineIsLoopback) {
  const auto loopback = [](const std::string& host) {
    return parse_model_spec("http://" + host + "/v1#m").value().loopback();
  };
  EXPECT_TRUE(loopback("127.0.0.1:80"));
  EXPECT_TRUE(loopback("127.9.9.9"));
  EXPECT_TRUE(loopback("[::1]:8000"));
  EXPECT_FALSE(loopback("127.0.0.1.example.com"));
  EXPECT_FALSE(loopback("localhost.example.com"));
  EXPECT_FALSE(loopback("10.0.0.1"));
}

TEST(Key, FromItsOwnVariableAlone) {
  const Variable ours("KERNELPRO_API_KEY", "other");
  const Variable anthropic("ANTHROPIC_API_KEY", " sk-one\n");
  const Variable openai("OPENAI_API_KEY", nullptr);
  EXPECT_EQ(key_of(*parse_model_spec("anthropic:m")).value(), "sk-one");
  EXPECT_EQ(key_of(*parse_model_spec("http://far.example/v1#m")).value(), "other");
  const auto missing = key_of(*parse_model_spec("openai:m"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(missing.error().next, "OPENAI_API_KEY"));
  const Variable none("KERNELPRO_API_KEY", nullptr);
  EXPECT_EQ(key_of(*parse_model_spec("http://127.0.0.1/v1#m")).value(), "");
  EXPECT_FALSE(key_of(*parse_model_spec("http://far.example/v1#m")));
  const Variable broken("ANTHROPIC_API_KEY", "sk\r\nx-evil: 1");
  const auto refused = key_of(*parse_model_spec("anthropic:m"));
  ASSERT_FALSE(refused);
  EXPECT_FALSE(contains(refused.error().text(), "evil"));
}

TEST(Key, IsBlottedOut) {
  const std::string key = "sk-ant-0123456789abcdef";
  EXPECT_EQ(scrub("bad key " + key + "!", key), "bad key [key]!");
  EXPECT_EQ(scrub(key + key, key), "[key][key]");
  EXPECT_EQ(scrub("begins sk-ant-01234...", key), "begins [key]...");
  EXPECT_EQ(scrub("ends ...89abcdef", key), "ends ...[key]");
  EXPECT_EQ(scrub("sk-ant", key), "sk-ant");
  EXPECT_EQ(scrub("short k1 key", "k1"), "short [key] key");
  EXPECT_EQ(scrub("text", ""), "text");
}

TEST(Prices, LongestPrefixAndNoGuess) {
  const auto prices = Prices::parse(
      "[[price]]\nmodel = \"openai:a\"\ninput = 2\noutput = 8\n"
      "[[price]]\nmodel = \"openai:a-mini\"\ninput = 1.0\noutput = 4\ncache_read = 0.5\n",
      "p.toml");
  ASSERT_TRUE(prices) << prices.error().text();
  EXPECT_EQ(prices->find("openai:b"), nullptr);
  EXPECT_EQ(prices->find("anthropic:openai:a"), nullptr);
  ASSERT_NE(prices->find("openai:a-mini-2"), nullptr);
  EXPECT_EQ(prices->find("openai:a-mini-2")->input, 1);
  EXPECT_EQ(prices->find("openai:a-2")->cache_read, 2);
  EXPECT_DOUBLE_EQ(cost_usd(*prices->find("openai:a-mini"), {1000000, 2000000, 0, 500000, false}),
                   1 + 1 + 2);
}

TEST(Prices, FaultsNameTheirPlace) {
  for (const char* text :
       {"[[price]]\ninput = 1\noutput = 2\n", "[[price]]\nmodel = \"m\"\ninput = 1\n",
        "[[price]]\nmodel = \"m\"\ninput = -1\noutput = 2\n",
        "[[price]]\nmodel = \"m\"\ninput = nan\noutput = 2\n",
        "[[price]]\nmodel = \"m\"\ninput = \"1\"\noutput = 2\n",
        "[[price]]\nmodel = \"m\"\ninput = 1\noutput = 2\nouput = 3\n", "price = 3\n",
        "price = [3]\n", "[[prices]]\n", "= broken\n"}) {
    const auto prices = Prices::parse(text, "p.toml");
    ASSERT_FALSE(prices) << text;
    EXPECT_EQ(prices.error().message.substr(0, 7), "p.toml:") << prices.error().text();
  }
}

TEST(Prices, TheFirstTableThatIsThere) {
  const TempDir dir;
  const Variable config("XDG_CONFIG_HOME", dir.path().c_str());
  const std::string row = "\ninput = 1\noutput = 1\n";
  {
    const Variable named("KERNELPRO_PRICES", nullptr);
    const auto embedded = Prices::load();
    ASSERT_TRUE(embedded) << embedded.error().text();
    EXPECT_EQ(embedded->source(), "the embedded table");
    for (const Price& price : embedded->all()) EXPECT_FALSE(price.as_of.empty());
    ASSERT_TRUE(make_dirs(join(dir.path(), "kernelpro")));
    ASSERT_TRUE(
        write_file(join(dir.path(), "kernelpro/prices.toml"), "[[price]]\nmodel = \"mine\"" + row));
    EXPECT_NE(Prices::load()->find("mine"), nullptr);
  }
  const std::string path = join(dir.path(), "named.toml");
  const Variable named("KERNELPRO_PRICES", path.c_str());
  EXPECT_FALSE(Prices::load());  // named, but missing: an error
  ASSERT_TRUE(write_file(path, "[[price]]\nmodel = \"named\"" + row));
  EXPECT_NE(Prices::load()->find("named"), nullptr);
  EXPECT_EQ(Prices::load()->find("mine"), nullptr);
}

TEST(Budget, EachLimitHoldsBeforeACall) {
  Budget budget({1000, 1.0, 3});
  EXPECT_FALSE(budget.admit({600, 0.5, 1}));
  EXPECT_TRUE(contains(budget.admit({600, 0.1, 1}).value(), "tokens"));  // the first is in flight
  EXPECT_TRUE(contains(budget.admit({100, 0.6, 1}).value(), "$"));
  budget.settle({600, 0.5, 1}, {100, 0.1, 1});
  EXPECT_FALSE(budget.admit({600, 0.5, 1}));
  budget.settle({600, 0.5, 1}, {100, 0.1, 1});
  EXPECT_FALSE(budget.admit({1, 0, 1}));
  EXPECT_TRUE(contains(budget.admit({1, 0, 1}).value(), "calls"));
  EXPECT_EQ(budget.spent().tokens, 200);
  EXPECT_FALSE(Budget().admit({1LL << 60, 1e9, 1}));
}

TEST(Budget, NeverPassedByManyThreads) {
  Budget budget({1000, std::nullopt, std::nullopt});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        if (!budget.admit({7, 0, 1})) budget.settle({7, 0, 1}, {7, 0, 1});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.spent().tokens, 994);
}

TEST(Retry, WaitsGrowAndHonourTheServer) {
  const RetryPolicy policy{6, 1, 2, 10};
  EXPECT_DOUBLE_EQ(wait_before(policy, 2, std::nullopt, 0), 0.5);
  EXPECT_DOUBLE_EQ(wait_before(policy, 4, std::nullopt, 0.5), 3);
  EXPECT_DOUBLE_EQ(wait_before(policy, 9, std::nullopt, 0), 5);
  EXPECT_DOUBLE_EQ(wait_before(policy, 2, 30, 0), 30);
  EXPECT_LT(wait_before(policy, 2, 30, 0.999), 33.01);
}

TEST(Retry, ReadsHeaders) {
  EXPECT_EQ(asked_wait("", "", "", 0), std::nullopt);
  EXPECT_EQ(asked_wait("", "3", "", 0), 3);
  EXPECT_EQ(asked_wait("", " 1.5 ", "", 0), 1.5);
  EXPECT_EQ(asked_wait("250", "3", "", 0), 0.25);
  EXPECT_EQ(asked_wait("soon", "3", "", 0), 3);
  EXPECT_EQ(asked_wait("", "-3", "", 0), 0);
  EXPECT_EQ(asked_wait("", "1e300", "", 0), 86400);
  EXPECT_EQ(asked_wait("", "nan", "", 0), std::nullopt);
  EXPECT_EQ(asked_wait("", "Sun, 06 Nov 1994 08:49:37 GMT", "", 784111770), 7);
  // The server's clock outweighs ours.
  EXPECT_EQ(asked_wait("", "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:33 GMT", 5), 4);
  EXPECT_EQ(asked_wait("", "Sun, 06 Nov 1994 08:49:37 GMT", "", 1784111770), 0);
}

TEST(Retry, ReadsDates) {
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 12:00:00 GMT"), 1709208000);
  EXPECT_EQ(parse_http_date("Fri, 01 Mar 2024 00:00:00 GMT"), 1709251200);
  for (const char* text : {"", "tomorrow", "Sun, 06 Nov 1994", "Sun, 40 Nov 1994 08:49:37 GMT",
                           "Sun, 06 ovD 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET"}) {
    EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace kernelpro
