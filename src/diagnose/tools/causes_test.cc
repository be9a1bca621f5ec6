// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/causes.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

SourceLine at(int line, const std::string& text = "") { return {"k.cu", line, text}; }

struct Kernel {
  Evidence evidence;
  Roofline roof;
  std::optional<KernelModel> model;

  Facts facts() {
    model.emplace(evidence, nullptr, roof);
    return {evidence, nullptr, roof, *model};
  }
};

TEST(Causes, TheCostliestLinesComeFirstWithTheirCalls) {
  Kernel k;
  EXPECT_EQ(sites_text(line_of(k.facts(), {"sass.hot.mufu"})), "");
  k.evidence.lines["sass.hot.mufu"] = {{at(1), at(2), at(3), at(4)}, {at(9), at(2)}};
  EXPECT_EQ(sites_text(line_of(k.facts(), {"sass.hot.ffma", "sass.hot.mufu"})),
            "k.cu:1, k.cu:2, k.cu:3, called at k.cu:9");
  Place place;
  place.at.line = at(7);
  place.stall = Stall::kShortScoreboard;
  place.share = place.exposed = 0.5;
  place.producers = {{{at(4), 0, "MUFU.RCP R1, R2"}, 1.0}};
  k.evidence.places.emplace().places = {place};
  EXPECT_EQ(sites_text(line_of(k.facts(), {"sass.hot.mufu"})),
            "k.cu:4, k.cu:1, k.cu:2, called at k.cu:9");
}

// From the lines themselves, else from places or sites that have them.
TEST(Causes, LinesHaveTheirTexts) {
  Kernel k;
  k.evidence.lines["sass.hot.mufu"] = {{at(1, "y = 1 / x;"), at(2), at(3), at(4)}, {}};
  Place place;
  place.at.line = at(2, "z = x * y;");
  k.evidence.places.emplace().places = {place};
  k.evidence.sites = {{SiteKind::kLoop, at(3, "for (;;) {"), 20, ""}};
  EXPECT_EQ(sites_text(line_of(k.facts(), {"sass.hot.mufu"})),
            "k.cu:1 `y = 1 / x;`, k.cu:2 `z = x * y;`, k.cu:3 `for (;;) {`");
  k.evidence.sites.clear();
  EXPECT_EQ(line_of(k.facts(), {"sass.hot.mufu"}).at(2).line.text, "");
}

TEST(Causes, SitesByKind) {
  Kernel k;
  k.evidence.sites = {{SiteKind::kSharedArray, at(3, "__shared__ float tile[32][32];"), 3, "tile"},
                      {SiteKind::kSharedArray, at(4, "__shared__ float other[32];"), 4, "other"},
                      {SiteKind::kLoop, at(5, "for (;;) {"), 20, ""},
                      {SiteKind::kLoop, at(10, "for (;;)"), 12, ""},
                      {SiteKind::kDepth, at(2, "constexpr int kStages = 2;"), 2, "kStages"},
                      {SiteKind::kLaunch, at(40, "k<<<1, 2>>>();"), 40, ""}};
  EXPECT_EQ(sites_text(site_of(k.facts(), {SiteKind::kBounds, SiteKind::kLaunch})),
            "launched at k.cu:40 `k<<<1, 2>>>();`");
  EXPECT_EQ(sites_text(site_of(k.facts(), {SiteKind::kBounds})), "");
  EXPECT_EQ(sites_text(depth_of(k.facts(), {"stage"})),
            "`kStages` at k.cu:2 `constexpr int kStages = 2;`");
  EXPECT_EQ(sites_text(depth_of(k.facts(), {"chain"})), "");
  k.evidence.lines["sass.hot.shared_loads"].lines = {at(11)};
  EXPECT_EQ(sites_text(loop_of(k.facts(), {"sass.hot.shared_loads"})),
            "in the loop at k.cu:10 `for (;;)`");
  Place place;
  place.at.line = at(11, "sum += tile[i][j] + others[k];");
  k.evidence.places.emplace().places = {place};
  EXPECT_EQ(sites_text(array_of(k.facts(), SiteKind::kSharedArray, {"sass.hot.shared_loads"})),
            "`tile` declared at k.cu:3 `__shared__ float tile[32][32];`");
  const FindingSites both =
      joined({{}, site_of(k.facts(), {SiteKind::kLaunch}), {}, depth_of(k.facts(), {"stage"})});
  EXPECT_EQ(
      sites_text(both),
      "launched at k.cu:40 `k<<<1, 2>>>();`; `kStages` at k.cu:2 `constexpr int kStages = 2;`");
}

TEST(Causes, ExposedWaitsByTheirProducers) {
  Kernel k;
  const auto constant = [](std::string_view code) { return code.starts_with("LDC"); };
  EXPECT_EQ(exposed_by(k.facts(), constant), 0);
  EXPECT_FALSE(exposed(k.facts(), {Stall::kWait}));
  Place place;
  place.stall = Stall::kShortScoreboard;
  place.share = 0.5;
  place.exposed = 0.4;
  place.producers = {{{at(4), 0, "LDC R1, c[0x3][R2]"}, 0.75}, {{at(5), 0, "LDS R1, [R2]"}, 0.25}};
  Places& places = k.evidence.places.emplace();
  places.places = {place};
  places.stalls = {{Stall::kShortScoreboard, 0.5, 0.4}, {Stall::kWait, 0.2, 0.1}};
  EXPECT_DOUBLE_EQ(exposed_by(k.facts(), constant), 0.3);
  EXPECT_DOUBLE_EQ(*exposed(k.facts(), {Stall::kShortScoreboard, Stall::kWait}), 0.5);
}

TEST(Causes, DefinitionsBehindALine) {
  Kernel k;
  k.evidence.sites = {
      {SiteKind::kDefinition, at(1, "constexpr int kColumns = 32;"), 1, "kColumns"},
      {SiteKind::kDefinition, at(2, "constexpr int kPitch = kColumns;"), 2, "kPitch"},
      {SiteKind::kDefinition, at(3, "constexpr int kOther = 1;"), 3, "kOther"},
      {SiteKind::kVariable, at(6, "float* row = tile + lane * kPitch;"), 6, "row"},
      {SiteKind::kVariable, at(20, "float* row = out;"), 20, "row"}};
  k.evidence.lines["sass.hot.shared_loads"].lines = {at(9, "sum += row[j];")};
  const FindingSites lines = line_of(k.facts(), {"sass.hot.shared_loads"});
  EXPECT_EQ(sites_text(definitions_of(k.facts(), lines)),
            "`kPitch` at k.cu:2 `constexpr int kPitch = kColumns;`, "
            "`kColumns` at k.cu:1 `constexpr int kColumns = 32;`");
  // What a finding names already is not said again, and what it does not name is not said.
  EXPECT_EQ(
      sites_text(definitions_of(k.facts(), {{at(2, "constexpr int kPitch = kColumns;"), ""}})),
      "`kColumns` at k.cu:1 `constexpr int kColumns = 32;`");
  EXPECT_TRUE(definitions_of(k.facts(), {{at(30, "x = y;"), ""}}).empty());
  EXPECT_TRUE(definitions_of(k.facts(), {}).empty());
}

}  // namespace
}  // namespace kernelpro
