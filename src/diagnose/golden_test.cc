// SPDX-License-Identifier: Apache-2.0
// Every tools/<name>/fixtures/*.json holds evidence, or names a recording in fixtures/ that does,
// and the finding that its tool must give. To refresh the expectations after a deliberate change:
// KERNELPRO_REFRESH=1 build/release/bin/test_diagnose
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "core/evidence/evidence.h"
#include "diagnose/runner.h"

namespace kernelpro {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFolder = std::string(KERNELPRO_SOURCE_DIR) + "/src/diagnose/tools";
constexpr const char* kStates[] = {"fired", "silent", "not-evaluable", "filtered-out"};

const Tool* row(const std::string& name) {
  for (const Tool& tool : tools()) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

std::vector<std::string> folders() {
  std::vector<std::string> result;
  for (const std::string& name : list_dir(kFolder)) {
    if (is_dir(join(kFolder, name))) result.push_back(name);
  }
  return result;
}

std::vector<std::string> fixtures(const std::string& tool) {
  std::vector<std::string> result;
  const std::string dir = join(join(kFolder, tool), "fixtures");
  for (const std::string& name : list_dir(dir)) result.push_back(join(dir, name));
  return result;
}

const std::string kRecordings = std::string(KERNELPRO_SOURCE_DIR) + "/src/diagnose/fixtures";

Evidence evidence_of(const Json& fixture) {
  Json holder = fixture;
  if (fixture.contains("recording")) {
    const std::string name = fixture.at("recording").get<std::string>();
    holder = Json::parse(*read_file(join(kRecordings, name + ".json")));
    EXPECT_TRUE(holder.at("recorded").contains("device")) << name;
  }
  const auto evidence = evidence_from_json(holder.at("evidence").dump());
  EXPECT_TRUE(evidence.has_value());
  return evidence.value_or(Evidence());
}

// The tool alone, so that no other one withholds its finding.
Diagnosis run_alone(const std::string& tool, const Json& fixture) {
  const Tool* one = row(tool);
  return run_tools(evidence_of(fixture), std::span<const Tool>(one, 1), {});
}

TEST(Tools, FoldersAreRows) {
  std::set<std::string> rows;
  for (const Tool& tool : tools()) {
    EXPECT_TRUE(rows.insert(std::string(tool.name)).second) << tool.name << " has two rows";
    const std::string dir = join(kFolder, tool.name);
    EXPECT_TRUE(exists(dir + "/" + std::string(tool.name) + ".cc")) << dir;
    EXPECT_TRUE(exists(dir + "/README.md")) << dir;
  }
  for (const std::string& folder : folders()) {
    EXPECT_TRUE(rows.contains(folder)) << folder << " has no row in tools.cc";
  }
}

// Its last paragraph lists the constants of its code: `kLeastShare = 0.03`.
TEST(Tools, ReadmesQuoteTheConstantsOfTheCode) {
  const std::regex constant("constexpr (?:double|int) (k\\w+ = [0-9.e-]+);");
  const std::regex quote("`(k\\w+ = [^`]*)`");
  const auto all = [](const std::string& text, const std::regex& pattern) {
    std::set<std::string> found;
    for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) {
      found.insert((*i)[1]);
    }
    return found;
  };
  for (const std::string& tool : folders()) {
    const std::string dir = join(kFolder, tool);
    EXPECT_EQ(all(*read_file(join(dir, "README.md")), quote),
              all(*read_file(join(dir, tool + ".cc")), constant))
        << tool << ": write the code's constants into the last line of its README.md";
  }
}

TEST(Tools, EachHasAFiringAndASilentFixture) {
  for (const std::string& tool : folders()) {
    std::set<std::string> states;
    for (const std::string& path : fixtures(tool)) {
      states.insert(Json::parse(*read_file(path)).at("state").get<std::string>());
    }
    EXPECT_TRUE(states.contains("fired")) << tool;
    EXPECT_TRUE(states.contains("silent") || states.contains("filtered-out")) << tool;
  }
}

void check(const std::string& tool, const std::string& path, bool refresh) {
  SCOPED_TRACE(path);
  Json fixture = Json::parse(*read_file(path));
  ASSERT_EQ(fixture.at("tool"), tool);
  const Diagnosis diagnosis = run_alone(tool, fixture);
  const Json got = Json::parse(diagnosis_to_json(diagnosis));
  const Json finding = got.at("findings").empty() ? Json() : got.at("findings").at(0);
  const std::string state = kStates[static_cast<int>(diagnosis.tools.at(0).state)];
  if (refresh) {
    fixture["state"] = state;
    fixture["expected"] = finding;
    ASSERT_TRUE(write_file(path, fixture.dump(2) + "\n").has_value());
    return;
  }
  EXPECT_EQ(fixture.at("state"), state) << diagnosis.tools.at(0).reason;
  EXPECT_EQ(fixture.at("expected"), finding)
      << "first difference: " << Json::diff(fixture.at("expected"), finding).dump(2);
}

// Prefer a recording to an invented case; a case without a recording is labeled as invented.
TEST(Tools, FixturesAreRecordedOrSaySo) {
  for (const std::string& tool : folders()) {
    for (const std::string& path : fixtures(tool)) {
      const Json fixture = Json::parse(*read_file(path));
      EXPECT_NE(fixture.contains("recording"), fixture.contains("evidence")) << path;
      if (fixture.contains("evidence")) {
        EXPECT_EQ(fixture.at("recorded"), "synthetic") << path;
      }
    }
  }
}

TEST(Tools, Goldens) {
  const bool refresh = std::getenv("KERNELPRO_REFRESH") != nullptr;
  int count = 0;
  for (const std::string& tool : folders()) {
    for (const std::string& path : fixtures(tool)) {
      check(tool, path, refresh);
      ++count;
    }
  }
  EXPECT_GE(count, 2 * static_cast<int>(tools().size()));
}

}  // namespace
}  // namespace kernelpro
