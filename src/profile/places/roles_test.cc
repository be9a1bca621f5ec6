// SPDX-License-Identifier: Apache-2.0
#include "profile/places/roles.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "core/finding/account_json.h"
#include "profile/sass/loops.h"

namespace kernelpro {
namespace {

// A kernel, instruction by instruction, and the samples of each.
struct Sampled {
  SassFunction f;
  std::vector<WaitAt> samples;

  Sampled() { f.files = {"kernel.cu"}; }
  void label(const std::string& name) { f.labels[name] = static_cast<int>(f.code.size()); }
  // `text`: "@!P0 BRA `(.L_1)", "SYNCS.PHASECHK P0, [R1]".
  void add(int line, const std::string& text, double all = 0, Stall stall = Stall::kSelected) {
    SassInstruction i;
    std::string rest = text;
    if (rest[0] == '@') {
      i.guard = rest.substr(0, rest.find(' '));
      rest = rest.substr(rest.find(' ') + 1);
    }
    std::string name = rest.substr(0, rest.find(' '));
    i.operands = rest.find(' ') == std::string::npos ? "" : rest.substr(rest.find(' ') + 1);
    i.root = name.substr(0, name.find('.'));
    if (name.find('.') != std::string::npos) i.modifiers = {name.substr(name.find('.') + 1)};
    i.address = 16 * f.code.size();
    i.file = 0;
    i.line = line;
    if (all > 0) samples.push_back({static_cast<int>(f.code.size()), stall, all, 0});
    f.code.push_back(i);
  }
  std::vector<WarpRole> roles() const {
    const std::vector<Flow> flow = flow_of(f);
    return warp_roles(f, flow, control_flow(f, flow), samples);
  }
};

// A producer that waits for free slots, and consumers that wait for tensor cores.
Sampled pipeline() {
  Sampled k;
  k.add(10, "ISETP P0, R0, 0x80");
  k.add(11, "@P0 BRA `(.L_consumer)");
  k.label(".L_produce");
  k.add(20, "SYNCS.PHASECHK P1, [R1]", 1);
  k.add(21, "LDG R4, [R2]", 2);
  k.add(20, "@!P1 BRA `(.L_again)", 60, Stall::kLongScoreboard);
  k.label(".L_free");
  k.add(22, "STS [R3], R4", 20, Stall::kLongScoreboard);
  k.add(23, "@P2 BRA `(.L_produce)", 2);
  k.add(24, "EXIT");
  k.label(".L_consumer");
  k.add(30, "SYNCS.PHASECHK P1, [R1]", 2);
  k.add(30, "@!P1 BRA `(.L_wait)", 3, Stall::kLongScoreboard);
  k.label(".L_full");
  k.add(31, "HGMMA R8, R8", 100, Stall::kGmma);
  k.add(32, "FFMA R8, R8, R9, R8", 90);
  k.add(33, "@P3 BRA `(.L_consumer)", 5, Stall::kBranchResolving);
  k.add(34, "EXIT");
  k.label(".L_again");
  k.add(5, "SYNCS.PHASECHK P1, [R1]", 5);
  k.add(5, "@!P1 BRA `(.L_again)", 10);
  k.add(5, "BRA `(.L_free)");
  k.label(".L_wait");
  k.add(5, "SYNCS.PHASECHK P1, [R1]");
  k.add(5, "@!P1 BRA `(.L_wait)");
  k.add(5, "BRA `(.L_full)");
  return k;
}

TEST(Roles, WhoWaitsForWhomIsTold) {
  const std::vector<WarpRole> roles = pipeline().roles();
  ASSERT_EQ(roles.size(), 2u);
  const WarpRole& producer = roles[0];
  EXPECT_NEAR(producer.share, 1 / 3., 1e-9);
  EXPECT_NEAR(producer.awaits, 0.75, 1e-9) << "at the branch, and while it looks again";
  EXPECT_NEAR(producer.ready, 0.05, 1e-9);
  ASSERT_EQ(producer.waits.size(), 1u);
  EXPECT_EQ(producer.waits[0].line.line, 22);
  const WarpRole& consumers = roles[1];
  EXPECT_EQ(role_words(consumers), "kernel.cu:30-33");
  EXPECT_NEAR(consumers.awaits, 0.015, 1e-9);
  ASSERT_EQ(consumers.waits.size(), 1u) << "what takes little is not told";
  EXPECT_EQ(consumers.waits[0].stall, Stall::kGmma);
  EXPECT_EQ(pace_setter(roles), &consumers);
  EXPECT_NE(
      roles_words(roles).find("those at kernel.cu:30-33 wait for the others, or for copies, 2 % of "
                              "their time and set the pace"),
      std::string::npos)
      << roles_words(roles);
}

TEST(Roles, WhoWaitsOftenSetsNoPace) {
  std::vector<WarpRole> roles = pipeline().roles();
  ASSERT_EQ(roles.size(), 2u);
  roles[1].awaits = 0.4;
  EXPECT_EQ(pace_setter(roles), nullptr) << "they wait for each other in turn";
  roles[0].awaits = roles[1].awaits = 0.05;
  EXPECT_EQ(pace_setter(roles), nullptr) << "nobody waits";
}

// The two ways meet again in each turn: every warp may take either.
TEST(Roles, BranchesWithinALoopMakeNone) {
  Sampled k;
  k.label(".L_loop");
  k.add(10, "@P0 BRA `(.L_other)", 5);
  k.label(".L_one");
  k.add(11, "@P1 BRA `(.L_one)", 50);
  k.add(12, "BRA `(.L_next)");
  k.label(".L_other");
  k.add(13, "@P1 BRA `(.L_other)", 50);
  k.label(".L_next");
  k.add(14, "@P2 BRA `(.L_loop)", 5);
  k.add(15, "EXIT");
  EXPECT_TRUE(k.roles().empty());
}

// A special case that returns early is no role either.
TEST(Roles, WhatNeverLoopsIsNone) {
  Sampled k;
  k.add(10, "@P0 BRA `(.L_loop)");
  k.add(11, "FFMA R0, R0, R1, R2", 40);
  k.add(12, "EXIT", 10, Stall::kDrain);
  k.label(".L_loop");
  k.add(13, "@P2 BRA `(.L_loop)", 50);
  k.add(14, "EXIT");
  EXPECT_TRUE(k.roles().empty());
}

// The warps of a producer's group that produce nothing go to the barrier at the end at once.
TEST(Roles, WarpsWithNothingToDoAreLeftOut) {
  Sampled k = pipeline();
  const auto total = [](const std::vector<WaitAt>& samples, std::map<Stall, StallShare>* stalls) {
    double all = 0;
    for (const WaitAt& each : samples) {
      (*stalls)[each.stall].share += each.all;
      (*stalls)[each.stall].exposed += each.exposed;
      all += each.all;
    }
    return all;
  };
  for (WaitAt& each : k.samples) each.exposed = each.stall == Stall::kSelected ? 0 : each.all / 2;
  std::map<Stall, StallShare> before;
  const double working = total(k.samples, &before);
  k.samples.push_back({static_cast<int>(k.f.code.size()), Stall::kBarrier, 100, 100});
  k.add(90, "BAR 0x0");
  k.add(91, "EXIT");
  std::map<Stall, StallShare> stalls;
  const double all = total(k.samples, &stalls);
  double exposed = 0;
  for (const auto& [stall, share] : stalls) exposed += share.exposed;
  const std::vector<Flow> flow = flow_of(k.f);
  leave_out_idle_warps(k.f, flow, control_flow(k.f, flow), &k.samples, &stalls);
  std::map<Stall, StallShare> after;
  EXPECT_DOUBLE_EQ(total(k.samples, &after), working);
  EXPECT_EQ(stalls.at(Stall::kBarrier).share, before[Stall::kBarrier].share);
  double left = 0;
  for (const auto& [stall, share] : stalls) left += share.exposed;
  EXPECT_GT(left / working, 0.9 * exposed / all);
}

// Of working warps, also in a loop as short as one that only looks again.
TEST(Roles, WaitsAtABarrierBeforeFurtherWorkAreKept) {
  Sampled k = pipeline();
  for (SassInstruction& each : k.f.code) {
    if (each.line != 32) continue;
    each.root = "BAR";
    each.operands = "0x1";
    const int place = static_cast<int>(&each - k.f.code.data());
    k.samples.push_back({place, Stall::kBarrier, 50, 50});
    break;
  }
  std::map<Stall, StallShare> stalls;
  for (const WaitAt& each : k.samples) stalls[each.stall].share += each.all;
  stalls[Stall::kBarrier].exposed = 50;
  const std::vector<Flow> flow = flow_of(k.f);
  leave_out_idle_warps(k.f, flow, control_flow(k.f, flow), &k.samples, &stalls);
  EXPECT_EQ(stalls[Stall::kBarrier].share, 50);
}

TEST(Roles, AreKeptInEvidenceAndAccount) {
  Places places;
  places.roles = pipeline().roles();
  KernelAccount kernel;
  kernel.us = 1;
  kernel.roles = places.roles;
  Account account;
  account.us = 1;
  account.kernels = {kernel};
  const Account again = read_account(account_json(account));
  ASSERT_EQ(again.kernels.size(), 1u);
  EXPECT_EQ(roles_words(again.kernels[0].roles), roles_words(places.roles));
}

}  // namespace
}  // namespace kernelpro
