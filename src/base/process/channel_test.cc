// SPDX-License-Identifier: Apache-2.0
#include "base/process/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

#include "base/clock.h"

namespace kernelpro {
namespace {

struct Pair {
  Pair() {
    auto ends = Channel::pair();
    a = std::move(ends.first);
    b = Channel(std::move(ends.second));
  }
  Channel a, b;
};

TEST(Channel, CarriesFramesInOrder) {
  Pair p;
  ASSERT_EQ(p.a.send("one"), ChannelState::kOk);
  ASSERT_EQ(p.a.send(""), ChannelState::kOk);
  ASSERT_EQ(p.a.send(std::string_view("t\0o", 3)), ChannelState::kOk);
  Frame frame;
  ASSERT_EQ(p.b.receive(&frame, 1), ChannelState::kOk);
  EXPECT_EQ(frame.bytes, "one");
  ASSERT_EQ(p.b.receive(&frame, 1), ChannelState::kOk);
  EXPECT_EQ(frame.bytes, "");
  ASSERT_EQ(p.b.receive(&frame, 1), ChannelState::kOk);
  EXPECT_EQ(frame.bytes, std::string("t\0o", 3));
}

TEST(Channel, CarriesMoreThanTheSocketHolds) {
  Pair p;
  std::string large(20 << 20, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4096) large[i] = static_cast<char>(i >> 12);
  std::thread sender([&] { EXPECT_EQ(p.a.send(large), ChannelState::kOk); });
  Frame frame;
  EXPECT_EQ(p.b.receive(&frame, 10), ChannelState::kOk);
  sender.join();
  EXPECT_EQ(frame.bytes == large, true);
}

TEST(Channel, CarriesDescriptors) {
  Pair p;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd read_end(ends[0]), write_end(ends[1]);
  ASSERT_EQ(p.a.send("take these", {write_end.get(), write_end.get()}), ChannelState::kOk);
  write_end.reset();
  Frame frame;
  ASSERT_EQ(p.b.receive(&frame, 1), ChannelState::kOk);
  ASSERT_EQ(frame.fds.size(), 2u);
  EXPECT_NE(::fcntl(frame.fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(frame.fds[1].get(), "hi", 2), 2);
  char buffer[2];
  EXPECT_EQ(::read(read_end.get(), buffer, 2), 2);
  frame.fds.clear();
  EXPECT_EQ(::read(read_end.get(), buffer, 2), 0);  // all copies are closed
}

// As many as are named, in a frame of one part or of several: descriptors come with parts.
TEST(Channel, DescriptorsBeyondItsLimitAreClosed) {
  for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    Pair p;
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    Fd read_end(ends[0]), write_end(ends[1]);
    p.b.accept_at_most(64, most);
    ASSERT_EQ(p.a.send("take these", {write_end.get(), write_end.get()}), ChannelState::kOk);
    write_end.reset();
    Frame frame;
    EXPECT_EQ(p.b.receive(&frame, 1), most < 2 ? ChannelState::kBroken : ChannelState::kOk);
    EXPECT_EQ(frame.fds.size(), most < 2 ? 0u : 2u);
    frame.fds.clear();
    char byte;
    EXPECT_EQ(::read(read_end.get(), &byte, 1), 0) << most;  // nobody holds the other end
  }
}

TEST(Channel, AFrameBeyondItsLimitIsRefused) {
  Pair p;
  p.b.accept_at_most(8, 0);
  Frame frame;
  ASSERT_EQ(p.a.send("12345678"), ChannelState::kOk);
  EXPECT_EQ(p.b.receive(&frame, 1), ChannelState::kOk);
  ASSERT_EQ(p.a.send("123456789"), ChannelState::kOk);
  EXPECT_EQ(p.b.receive(&frame, 1), ChannelState::kBroken);
}

TEST(Channel, WaitsNoLongerThanItsLimit) {
  Pair p;
  Frame frame;
  const double begin = real_clock().now_s();
  EXPECT_EQ(p.b.receive(&frame, 0.1), ChannelState::kTimeout);
  EXPECT_GE(real_clock().now_s() - begin, 0.09);
  // Half a frame does not stretch the limit.
  const std::uint32_t length = 100;
  ASSERT_EQ(::write(p.a.fd(), &length, sizeof length), 4);
  EXPECT_EQ(p.b.receive(&frame, 0.1), ChannelState::kTimeout);
  // Nobody reads: sending times out. (Without the limit neither call would return.)
  EXPECT_EQ(p.a.send(std::string(8 << 20, 'x'), {}, 0.1), ChannelState::kTimeout);
}

TEST(Channel, RefusesAnOversizeFrame) {
  Pair p;
  const std::uint32_t length = 0xffffffff;
  ASSERT_EQ(::write(p.a.fd(), &length, sizeof length), 4);
  Frame frame;
  EXPECT_EQ(p.b.receive(&frame, 1), ChannelState::kBroken);
}

TEST(Channel, NoticesThatThePeerIsGone) {
  Pair p;
  ASSERT_EQ(p.a.send("last words"), ChannelState::kOk);
  p.a.close();
  Frame frame;
  ASSERT_EQ(p.b.receive(&frame, 1), ChannelState::kOk);
  EXPECT_EQ(p.b.receive(&frame, 1), ChannelState::kClosed);
  EXPECT_EQ(p.b.send("anybody?"), ChannelState::kClosed);
}

}  // namespace
}  // namespace kernelpro
