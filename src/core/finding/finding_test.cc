// SPDX-License-Identifier: Apache-2.0
#include "core/finding/finding.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace kernelpro {
namespace {

const FindingSites kSites = {
    {{"a, b; at c.cu", 41, ""}, ""}, {{"k.cu", 44, ""}, ""},
    {{"k.cu", 65, ""}, "called at"}, {{"k.cu", 70, ""}, "called at"},
    {{"k.cu", 9, ""}, "", 1},        {{"k.cu", 9, ""}, "`tile` declared at", 2}};
constexpr const char* kText =
    "a, b; at c.cu:41, k.cu:44, called at k.cu:65, k.cu:70; k.cu:9; `tile` declared at k.cu:9";

Diagnosis with(const Finding& finding) {
  Diagnosis diagnosis;
  diagnosis.findings = {finding};
  return diagnosis;
}

TEST(Finding, SitesReadAsProse) {
  EXPECT_EQ(sites_text({}), "");
  EXPECT_EQ(sites_text(kSites), kText);
}

TEST(Finding, SitesSurviveJson) {
  Finding finding;
  finding.tool = "bank-conflicts";
  finding.sites = kSites;
  finding.where = sites_text(kSites);
  const std::string json = diagnosis_to_json(with(finding));
  const auto again = diagnosis_from_json(json);
  ASSERT_TRUE(again);
  const FindingSites& sites = again->findings.at(0).sites;
  ASSERT_EQ(sites.size(), kSites.size());
  for (std::size_t i = 0; i < sites.size(); ++i) {
    EXPECT_EQ(sites[i].line.file, kSites[i].line.file) << i;
    EXPECT_EQ(sites[i].line.line, kSites[i].line.line) << i;
    EXPECT_EQ(sites[i].role, kSites[i].role) << i;
    EXPECT_EQ(sites[i].group, kSites[i].group) << i;
  }
  EXPECT_EQ(again->findings[0].where, kText);
  EXPECT_EQ(diagnosis_to_json(*again), json);
}

TEST(Finding, StoresOfEarlierVersionsKeepTheirProse) {
  Finding finding;
  finding.where = "kernel.cu:41, called at kernel.cu:65";
  const auto again = diagnosis_from_json(diagnosis_to_json(with(finding)));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->findings.at(0).sites.empty());
  EXPECT_EQ(again->findings[0].where, finding.where);
}

TEST(Finding, DamagedSitesAreEmptyOnes) {
  const auto read = diagnosis_from_json(
      R"({"findings": [{"where": "k.cu:1", "sites": [7, {"file": 3, "line": "x", "group": []}]}]})");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->findings.at(0).sites.size(), 2u);
  EXPECT_EQ(read->findings[0].sites[1].line.file, "");
  EXPECT_EQ(diagnosis_from_json(R"({"findings": [{"where": "k.cu:1", "sites": 7}]})")
                ->findings.at(0)
                .where,
            "k.cu:1");
}

}  // namespace
}  // namespace kernelpro
