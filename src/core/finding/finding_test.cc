// SPDX-License-Identifier: Apache-2.0
#include "core/finding/finding.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace kernelpro {
namespace {

const FindingSites kSites = {{{"a, b; at c.cu", 41, "x = a[i];"}, ""},
                             {{"k.cu", 44, ""}, ""},
                             {{"k.cu", 65, ""}, "called at"},
                             {{"k.cu", 70, ""}, "called at"},
                             {{"k.cu", 9, ""}, "", 1},
                             {{"k.cu", 9, ""}, "`tile` declared at", 2}};
constexpr const char* kText =
    "a, b; at c.cu:41 `x = a[i];`, k.cu:44, called at k.cu:65, k.cu:70; k.cu:9; `tile` declared at "
    "k.cu:9";

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
  const std::string json = diagnosis_to_json(with(finding));
  const auto again = diagnosis_from_json(json);
  ASSERT_TRUE(again);
  const FindingSites& sites = again->findings.at(0).sites;
  ASSERT_EQ(sites.size(), kSites.size());
  for (std::size_t i = 0; i < sites.size(); ++i) {
    EXPECT_EQ(sites[i].line.file, kSites[i].line.file) << i;
    EXPECT_EQ(sites[i].line.line, kSites[i].line.line) << i;
    EXPECT_EQ(sites[i].line.text, kSites[i].line.text) << i;
    EXPECT_EQ(sites[i].role, kSites[i].role) << i;
    EXPECT_EQ(sites[i].group, kSites[i].group) << i;
  }
  EXPECT_EQ(diagnosis_to_json(*again), json);
  EXPECT_EQ(parse_json(json)->at("findings").at(0).at("where"), kText) << "for people";
}

std::string text_of_stored(const std::string& finding) {
  const auto read = diagnosis_from_json("{\"findings\": [" + finding + "]}");
  EXPECT_TRUE(read);
  const auto again = diagnosis_from_json(diagnosis_to_json(*read));
  EXPECT_EQ(sites_text(again->findings.at(0).sites), sites_text(read->findings.at(0).sites));
  return sites_text(read->findings[0].sites);
}

TEST(Finding, StoresOfEarlierVersionsKeepTheirProse) {
  EXPECT_EQ(text_of_stored(R"({"where": "kernel.cu:41, called at kernel.cu:65"})"),
            "kernel.cu:41, called at kernel.cu:65");
  // Then sites came, without texts.
  EXPECT_EQ(text_of_stored(R"({"where": "k.cu:41", "sites": [{"file": "k.cu", "line": 41}]})"),
            "k.cu:41");
  EXPECT_EQ(text_of_stored("{}"), "");
}

TEST(Finding, DamagedSitesAreLeftOut) {
  EXPECT_EQ(text_of_stored(R"({"where": "k.cu:1", "sites": [7, {"file": 3, "line": "x"}]})"),
            "k.cu:1");
  EXPECT_EQ(text_of_stored(R"({"where": "k.cu:1", "sites": 7})"), "k.cu:1");
  EXPECT_EQ(text_of_stored(R"({"where": "k.cu:1", "sites": [{"file": "k.cu", "line": 2}, {}]})"),
            "k.cu:2");
}

}  // namespace
}  // namespace kernelpro
