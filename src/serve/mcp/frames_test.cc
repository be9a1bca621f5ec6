// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/frames.h"

#include <gtest/gtest.h>

#include "serve/mcp/rpc.h"

namespace kernelpro {
namespace {

struct Read {
  std::vector<std::string> frames;
  int too_large = 0;
};

Read read(const std::string& bytes, std::size_t step, std::size_t most) {
  Read result;
  FrameReader reader(most);
  const FrameReader::Sink sink{
      [&](std::string&& frame) { result.frames.push_back(std::move(frame)); },
      [&] { ++result.too_large; }};
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    reader.feed(std::string_view(bytes).substr(at, step), sink);
    EXPECT_LE(reader.kept(), most);
  }
  return result;
}

TEST(Frames, LinesHoweverTheyAreCut) {
  const std::string bytes = "{\"a\":1}\n\n  \r\n{\"b\":2}\r\nrest without an end";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const Read all = read(bytes, step, 100);
    ASSERT_EQ(all.frames.size(), 2u) << step;
    EXPECT_EQ(all.frames[0], "{\"a\":1}");
    EXPECT_EQ(all.frames[1], "{\"b\":2}\r");
  }
}

TEST(Frames, AHugeLineIsToldOnceAndSkipped) {
  const std::string bytes = "one\n" + std::string(1000, 'x') + "\ntwo\n";
  for (const std::size_t step : {1u, 7u, 64u, 5000u}) {
    const Read all = read(bytes, step, 100);
    EXPECT_EQ(all.too_large, 1) << step;
    EXPECT_EQ(all.frames, (std::vector<std::string>{"one", "two"})) << step;
  }
  EXPECT_EQ(read(std::string(100, 'x') + "\n", 3, 100).frames.size(), 1u);
  EXPECT_EQ(read(std::string(101, 'x') + "\n", 3, 100).too_large, 1);
}

int code_of(const std::string& frame) {
  const RpcFrame read = read_rpc(frame);
  if (read.parts.size() != 1) return -1;
  const auto* fault = std::get_if<RpcFault>(&read.parts[0]);
  return fault == nullptr ? 0 : fault->answer["error"]["code"].get<int>();
}

TEST(Rpc, FaultsHaveTheirCodes) {
  EXPECT_EQ(code_of("not json"), kRpcParseError);
  EXPECT_EQ(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"), kRpcParseError);
  EXPECT_EQ(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\""), kRpcParseError);
  EXPECT_EQ(code_of("42"), kRpcInvalidRequest);
  EXPECT_EQ(code_of("[]"), kRpcInvalidRequest);
  EXPECT_EQ(code_of("{\"id\":1,\"method\":\"ping\"}"), kRpcInvalidRequest);
  EXPECT_EQ(code_of("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}"), kRpcInvalidRequest);
  EXPECT_EQ(code_of("{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}"), kRpcInvalidRequest);
  EXPECT_EQ(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}"), kRpcInvalidRequest);
  EXPECT_EQ(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[1]}"),
            kRpcInvalidRequest);
  EXPECT_EQ(code_of("{\"jsonrpc\":\"2.0\",\"id\":1}"), kRpcInvalidRequest);
  EXPECT_EQ(code_of(std::string(100000, '[')), kRpcInvalidRequest);
  EXPECT_EQ(code_of("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}"), 0);
}

TEST(Rpc, KindsAndBatches) {
  const auto kind = [](const std::string& frame) {
    return std::get<RpcMessage>(read_rpc(frame).parts.at(0)).kind;
  };
  EXPECT_EQ(kind("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"), RpcMessage::Kind::kNotification);
  EXPECT_EQ(kind("{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}"), RpcMessage::Kind::kResponse);
  const RpcFrame batch = read_rpc("[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}, 3]");
  EXPECT_TRUE(batch.batch);
  ASSERT_EQ(batch.parts.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<RpcMessage>(batch.parts[0]));
  EXPECT_TRUE(std::holds_alternative<RpcFault>(batch.parts[1]));
}

}  // namespace
}  // namespace kernelpro
