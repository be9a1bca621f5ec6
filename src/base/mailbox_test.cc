// SPDX-License-Identifier: Apache-2.0
#include "base/mailbox.h"

#include <gtest/gtest.h>

#include <vector>

namespace kernelpro {
namespace {

TEST(Mailbox, TheOwnerRunsWhatOthersHandIn) {
  Mailbox mailbox;
  std::vector<int> seen;  // by the owner alone
  const auto owner = std::this_thread::get_id();
  bool elsewhere = false;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      mailbox.post([&, i] {
        elsewhere |= std::this_thread::get_id() != owner;
        seen.push_back(i);
      });
    }
    std::size_t then = 0;
    mailbox.call([&] { then = seen.size(); });
    EXPECT_EQ(then, 100u) << "call waits, and keeps the order";
    mailbox.post([&] { seen.push_back(-1); });
  });
  while (seen.empty() || seen.back() != -1) mailbox.run_next();
  other.join();
  EXPECT_FALSE(elsewhere);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Mailbox, OnTheOwnersThreadACallRunsHere) {
  Mailbox mailbox;
  int ran = 0;
  mailbox.call([&] { ++ran; });
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace kernelpro
