// SPDX-License-Identifier: Apache-2.0
#include "diagnose/account/costly.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpro {
namespace {

// A kernel of half the call's time that waits a quarter of it at each of these lines.
struct Waits {
  Places places;
  KernelAccount account;

  explicit Waits(const std::vector<SourceLine>& lines) {
    account.us = 50;
    account.parts = {{PartKind::kWait, Stall::kLongScoreboard, 50, Level::kCounters, ""}};
    for (const SourceLine& line : lines) {
      Place place;
      place.at.line = line;
      place.stall = Stall::kLongScoreboard;
      place.share = place.exposed = 0.25;
      places.places.push_back(place);
    }
  }
  Finding placed(const FindingSites& sites) const {
    Finding finding;
    finding.sites = sites;
    place_finding(places, account, 100, &finding);
    return finding;
  }
};

TEST(Costly, AFindingIsPlacedAtItsSites) {
  const Waits waits({{"k.cu", 3, ""}, {"k.cu", 4, ""}, {"other.cu", 3, ""}});
  const Finding finding = waits.placed({{{"k.cu", 3, ""}, ""}, {{"k.cu", 9, ""}, "called at"}});
  ASSERT_EQ(finding.places.size(), 1u);
  EXPECT_EQ(finding.places[0].line.file, "k.cu");
  EXPECT_EQ(finding.places[0].line.line, 3);
  EXPECT_DOUBLE_EQ(finding.share, 0.125) << "a quarter of half the call";
  EXPECT_TRUE(waits.placed({}).places.empty());
}

TEST(Costly, AnyNameOfAFileKeepsItsPlace) {
  for (const char* file : {"my kernel, v2; final.cu", "a:3", "called at k.cu", ","}) {
    const Waits waits({{file, 3, ""}, {"v2; final.cu", 3, ""}, {"k.cu", 3, ""}});
    const Finding finding = waits.placed({{{file, 3, ""}, "launched at"}});
    ASSERT_EQ(finding.places.size(), 1u) << file;
    EXPECT_EQ(finding.places[0].line.file, file);
    EXPECT_DOUBLE_EQ(finding.share, 0.125) << file;
  }
}

TEST(Costly, CodeWithoutLinesHasNoPlaceToName) {
  const Waits waits({{"", 0, ""}});
  EXPECT_TRUE(waits.placed({{{"", 0, ""}, ""}}).places.empty());
}

TEST(Costly, OneThatHasPlacesIsLeftAlone) {
  const Waits waits({{"k.cu", 3, ""}});
  Finding finding;
  finding.sites = {{{"k.cu", 3, ""}, ""}};
  finding.places.emplace_back();
  place_finding(waits.places, waits.account, 100, &finding);
  EXPECT_EQ(finding.places.size(), 1u);
  EXPECT_EQ(finding.share, 0);
}

TEST(Costly, ALineIsOnePlaceWithAllThatItCosts) {
  Waits waits({{"k.cu", 3, ""},
               {"k.cu", 4, ""},
               {"k.cu", 3, ""},
               {"k.cu", 3, ""},
               {"", 0, ""},
               {"", 0, ""}});
  waits.places.places[2].stall = Stall::kWait;
  waits.places.places[2].exposed = 0.1;
  // Half of what is issued, which takes a fifth of the time; a tenth of the warps' samples.
  waits.places.places[3].stall = Stall::kSelected;
  waits.places.places[3].share = 0.05;
  waits.account.warp_issuing = 0.1;
  waits.account.issuing = 0.2;
  BeyondFloor beyond;
  beyond.active_us = 50;
  beyond.issue_us = 10;
  beyond.waits.fill(1);
  add_costly_places(waits.places, beyond, 100, &waits.account);
  ASSERT_EQ(waits.account.places.size(), kCostliest);
  const CostlyPlace& line = waits.account.places[0];
  EXPECT_EQ(line.line.line, 3);
  EXPECT_EQ(line.stall, Stall::kLongScoreboard) << "named by what costs most there";
  EXPECT_DOUBLE_EQ(line.share, 0.25);
  EXPECT_DOUBLE_EQ(line.also, 0.2) << "a tenth waits, and a tenth issues";
  EXPECT_DOUBLE_EQ(line.us, 22.5);
  EXPECT_DOUBLE_EQ(line.gain, 100 / 77.5);
  EXPECT_EQ(waits.account.places[1].line.line, 4);
  EXPECT_TRUE(waits.account.places[2].line.file.empty()) << "without lines, instructions are apart";
}

TEST(Costly, WaitsForThePaceSetterCostNothing) {
  Waits waits({{"k.cu", 12, ""}, {"k.cu", 32, ""}, {"k.cu", 33, ""}});
  waits.places.places[0].at.instruction = waits.places.places[1].at.instruction =
      "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2";
  WarpRole producers{"k.cu", 10, 20, 0.5, 0.01, 0.5, {}};
  WarpRole consumers{"k.cu", 30, 40, 0.5, 0.6, 0.2, {}};
  BeyondFloor beyond;
  beyond.active_us = 50;
  beyond.waits.fill(1);
  add_costly_places(waits.places, beyond, 100, &waits.account);
  EXPECT_EQ(waits.account.places.size(), 3u) << "without roles each wait counts";
  waits.places.roles = {producers, consumers};
  waits.account.places.clear();
  add_costly_places(waits.places, beyond, 100, &waits.account);
  ASSERT_EQ(waits.account.places.size(), 2u);
  EXPECT_EQ(waits.account.places[0].line.line, 12) << "the producers' own";
  EXPECT_EQ(waits.account.places[1].line.line, 33) << "a load of the consumers";
}

TEST(Costly, WhatWouldHaveToHoldDependsOnWhatIsWaitedFor) {
  CostlyPlace place;
  place.stall = Stall::kLongScoreboard;
  const auto because = [&](const char* instruction) {
    place.because = CodePoint{{"k.cu", 3, ""}, 0, instruction};
    return std::string(remedy_of(place).condition);
  };
  const std::string load = because("LDG.E.128 R4, desc[UR4][R2.64]");
  const std::string store = because("@P6 STG.E desc[UR18][R2.64], R27");
  const std::string tile = because("UBLKCP.S.G [UR6], [UR8], UR10");
  EXPECT_NE(load, store);
  EXPECT_NE(load, tile);
  EXPECT_NE(store, tile);
  EXPECT_EQ(because("UTMASTG.2D [UR16], [UR10]"), load) << "it reads no registers of lanes";
  place.stall = Stall::kBarrier;
  EXPECT_EQ(because("@P6 STG.E desc[UR18][R2.64], R27"), remedy_of(Stall::kBarrier).condition);
}

}  // namespace
}  // namespace kernelpro
