// SPDX-License-Identifier: Apache-2.0
#include "core/finding/finding.h"

#include <algorithm>

#include "base/json.h"
#include "core/evidence/places_json.h"
#include "core/finding/account_json.h"

namespace kernelpro {

namespace {
constexpr std::string_view kSeverities[] = {"info", "warning", "critical"};
constexpr std::string_view kBounds[] = {"memory", "compute", "latency",
                                        "launch", "mixed",   "unknown"};
constexpr std::string_view kStates[] = {"fired", "silent", "not-evaluable", "filtered-out"};

template <class Enum, std::size_t N>
Enum named(const std::string_view (&names)[N], std::string_view name, Enum otherwise) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return otherwise;
}

std::vector<std::string> strings(const Json& array) {
  std::vector<std::string> result;
  for (const Json& item : array) {
    if (item.is_string()) result.push_back(item.get<std::string>());
  }
  return result;
}

Json site_json(const FindingSite& site) {
  Json json = Json::object();
  if (!site.line.file.empty()) json = source_line_json(site.line);
  if (!site.role.empty()) json["role"] = site.role;
  if (site.group > 0) json["group"] = site.group;
  return json;
}

// Stores of earlier versions have "where" alone. What is written there by this one is for people.
FindingSites read_sites(const JsonReader& finding) {
  FindingSites sites;
  for (const Json& each : finding.array("sites")) {
    const JsonReader r(each);
    FindingSite site{read_source_line(each), r.text("role"), static_cast<int>(r.integer("group"))};
    if (!site.line.file.empty() || !site.role.empty()) sites.push_back(std::move(site));
  }
  const std::string where = finding.text("where");
  if (sites.empty() && !where.empty()) sites.push_back({{}, where});
  return sites;
}

Finding read_finding(const Json& json) {
  const JsonReader r(json);
  Finding f;
  f.tool = r.text("tool");
  f.severity = named(kSeverities, r.text("severity"), Severity::kInfo);
  f.kernel = r.text("kernel");
  f.cause = r.text("cause");
  f.sites = read_sites(r);
  f.metrics = strings(r.array("metrics"));
  for (const Json& p : r.array("prescriptions")) {
    const JsonReader pr(p);
    f.prescriptions.push_back({pr.text("tag"), pr.text("text"), pr.text("not_when")});
  }
  f.likely_speedup = r.real("likely_speedup", 1);
  f.upper_speedup = r.real("upper_speedup", 1);
  f.level = level_from_name(r.text("level")).value_or(f.level);
  f.stop = r.flag("stop");
  f.another_unit = r.flag("another_unit");
  for (const Json& place : r.array("places")) f.places.push_back(read_costly_place(place));
  f.share = r.real("share");
  return f;
}
}  // namespace

std::string_view severity_name(Severity severity) {
  return kSeverities[static_cast<int>(severity)];
}
std::string_view bound_name(Bound bound) { return kBounds[static_cast<int>(bound)]; }
std::optional<Bound> bound_from_number(std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(std::size(kBounds))) return std::nullopt;
  return static_cast<Bound>(number);
}
Bound bound_from_name(std::string_view name) { return named(kBounds, name, Bound::kUnknown); }

std::string diagnosis_to_json(const Diagnosis& diagnosis) {
  Json findings = Json::array();
  for (const Finding& f : diagnosis.findings) {
    Json prescriptions = Json::array();
    for (const Prescription& p : f.prescriptions) {
      prescriptions.push_back({{"tag", p.tag}, {"text", p.text}, {"not_when", p.not_when}});
    }
    Json item = {{"tool", f.tool},
                 {"severity", severity_name(f.severity)},
                 {"cause", f.cause},
                 {"metrics", f.metrics},
                 {"prescriptions", prescriptions},
                 {"likely_speedup", f.likely_speedup},
                 {"upper_speedup", f.upper_speedup},
                 {"level", level_name(f.level)},
                 {"stop", f.stop}};
    if (f.another_unit) item["another_unit"] = true;
    if (!f.kernel.empty()) item["kernel"] = f.kernel;
    if (!f.sites.empty()) {
      item["where"] = sites_text(f.sites);
      Json sites = Json::array();
      for (const FindingSite& site : f.sites) sites.push_back(site_json(site));
      item["sites"] = std::move(sites);
    }
    if (!f.places.empty()) {
      Json places = Json::array();
      for (const CostlyPlace& place : f.places) places.push_back(costly_place_json(place));
      item["places"] = std::move(places);
    }
    if (f.share > 0) item["share"] = f.share;
    findings.push_back(std::move(item));
  }
  Json tools = Json::array();
  for (const ToolRun& t : diagnosis.tools) {
    tools.push_back(
        {{"tool", t.tool}, {"state", kStates[static_cast<int>(t.state)]}, {"reason", t.reason}});
  }
  Json json = {{"bound", bound_name(diagnosis.bound)},
               {"floor_us", diagnosis.floor_us},
               {"fraction_of_ceiling", diagnosis.fraction_of_ceiling},
               {"summary", diagnosis.summary},
               {"findings", findings},
               {"tools", tools}};
  if (diagnosis.account.known()) json["account"] = account_json(diagnosis.account);
  if (!diagnosis.record.empty()) json["record"] = diagnosis.record;
  return dump_json(json);
}

std::optional<Diagnosis> diagnosis_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  Diagnosis d;
  d.bound = bound_from_name(r.text("bound"));
  d.floor_us = r.real("floor_us");
  d.fraction_of_ceiling = r.real("fraction_of_ceiling");
  d.summary = r.text("summary");
  d.record = r.text("record");
  d.account = read_account(r.object("account"));
  for (const Json& f : r.array("findings")) d.findings.push_back(read_finding(f));
  for (const Json& t : r.array("tools")) {
    const JsonReader tr(t);
    d.tools.push_back({tr.text("tool"), named(kStates, tr.text("state"), ToolRun::State::kSilent),
                       tr.text("reason")});
  }
  return d;
}

const Finding* answered(const Diagnosis& diagnosis, const FindingRef& answers) {
  if (answers.empty()) return nullptr;
  const auto of_tool = [&](const Finding& f) { return f.tool == answers.tool; };
  const auto prescribes = [&](const Finding& f) {
    return of_tool(f) && std::any_of(f.prescriptions.begin(), f.prescriptions.end(),
                                     [&](const Prescription& p) { return p.tag == answers.tag; });
  };
  const auto& all = diagnosis.findings;
  auto found = std::find_if(all.begin(), all.end(), prescribes);
  if (found == all.end()) found = std::find_if(all.begin(), all.end(), of_tool);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace kernelpro
