// SPDX-License-Identifier: Apache-2.0
#include "write/model/sse.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

// "type|data;..." of the events, with the bytes handed over `step` at a time.
std::string events(std::string_view bytes, std::size_t step) {
  std::string result;
  SseReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    EXPECT_TRUE(reader.feed(bytes.substr(at, step), [&](SseEvent&& event) {
      result += event.type + "|" + event.data + ";";
    }));
  }
  return result;
}

struct Example {
  const char* bytes;
  const char* expected;
};

TEST(Sse, EveryFormHoweverCut) {
  const Example examples[] = {
      {"data: a\n\n", "|a;"},
      {"event: x\ndata: a\ndata: b\n\n", "x|a\nb;"},
      {"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", "x|a;|b;"},
      {"data: a\r\rdata: b\r\r", "|a;|b;"},
      {"data: a\r\ndata: b\n\rdata: c\n\n", "|a\nb;|c;"},
      {": comment\ndata:a\n\n", "|a;"},
      {"data:  two\n\n", "| two;"},
      {"data\n\n", "|;"},
      {"event: lone\n\ndata: a\n\n", "|a;"},
      {"id: 7\nretry: 3\nother: x\ndata: a\n\n", "|a;"},
      {"\xEF\xBB\xBF"
       "data: a\n\n",
       "|a;"},
      {"data: cut off\n", ""},
      {"\n\n\n", ""},
  };
  for (const Example& example : examples) {
    for (const std::size_t step : {1, 2, 3, 5, 1000}) {
      EXPECT_EQ(events(example.bytes, step), example.expected) << example.bytes << " by " << step;
    }
  }
}

TEST(Sse, SizesAreBounded) {
  const auto none = [](SseEvent&&) { FAIL(); };
  SseReader line(100);
  EXPECT_TRUE(line.feed("data: " + std::string(90, 'x'), none));
  EXPECT_FALSE(line.feed(std::string(90, 'x'), none));
  EXPECT_FALSE(line.feed("\n\n", none));
  SseReader lines(100);
  bool well = true;
  for (int i = 0; i < 30; ++i) well = lines.feed("data: 1234567\n", none);
  EXPECT_FALSE(well);
  EXPECT_TRUE(lines.failed());
}

TEST(Sse, TellsWhatIsUnfinished) {
  SseReader reader;
  EXPECT_FALSE(reader.within_event());
  reader.feed("data: a\n", [](SseEvent&&) {});
  EXPECT_TRUE(reader.within_event());
  reader.feed("\n", [](SseEvent&&) {});
  EXPECT_FALSE(reader.within_event());
}

}  // namespace
}  // namespace kernelpro
