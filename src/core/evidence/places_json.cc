// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/places_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/plain_json.h"
#include "base/text.h"

namespace kernelpro {

Json source_line_json(const SourceLine& line) {
  Json json = {{"file", line.file}, {"line", line.line}};
  if (!line.text.empty()) json["text"] = line.text;
  return json;
}

namespace {

constexpr std::string_view kBases[] = {"sampled", "estimated"};
constexpr std::size_t kMostProducers = 8;  // read of one place

constexpr std::size_t kMostLines = 8;  // read of one metric
constexpr std::string_view kSites[] = {
    "kernel", "launch-bounds", "pointers",    "launch",     "grid",       "block",
    "shared", "shared-array",  "local-array", "constant",   "depth",      "unroll",
    "loop",   "copy",          "sync",        "allocation", "definition", "variable"};

Json point_to_json(const CodePoint& at) {
  Json json = {{"offset", at.offset}, {"code", at.instruction}};
  if (at.line.file.empty()) return json;
  json["file"] = at.line.file;
  json["line"] = at.line.line;
  if (!at.line.text.empty()) json["text"] = at.line.text;
  for (const SourceLine& each : at.callers) json["callers"].push_back(source_line_json(each));
  return json;
}

using LineKey = std::pair<std::string, int>;

// `told`: the lines whose texts are written already.
Json refs_to_json(const std::vector<SourceLine>& lines, std::set<LineKey>* told) {
  Json json = Json::array();
  for (const SourceLine& line : lines) {
    Json ref = {line.file, line.line};
    if (!line.text.empty() && told->emplace(line.file, line.line).second) ref.push_back(line.text);
    json.push_back(std::move(ref));
  }
  return json;
}

using plain::array;
using plain::member;
using plain::Plain;
using plain::text;

int natural(const Plain& json, const char* name) {
  const Plain& value = member(json, name);
  if (!value.is_number_integer()) return 0;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp<std::int64_t>(value.get<std::int64_t>(), 0, kMost));
}

double amount(const Plain& json, const char* name) {
  const Plain& value = member(json, name);
  const double real = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(real) ? std::max(0.0, real) : 0;
}

double part(const Plain& json, const char* name) { return std::min(1.0, amount(json, name)); }

SourceLine line_from_json(const Plain& json) {
  return {text(json, "file"), natural(json, "line"), text(json, "text")};
}

CodePoint point_from_json(const Plain& json) {
  CodePoint at;
  at.line = line_from_json(json);
  at.offset = natural(json, "offset");
  at.instruction = text(json, "code");
  for (const Plain& each : array(json, "callers")) {
    if (at.callers.size() == kMostCallers) break;
    if (each.is_object()) at.callers.push_back(line_from_json(each));
  }
  return at;
}

// Of arrays of a file, a line and, where it is first named, its text.
std::vector<SourceLine> refs_from_json(const Plain& json, std::map<LineKey, std::string>* texts) {
  std::vector<SourceLine> lines;
  for (const Plain& each : json) {
    if (lines.size() == kMostLines) break;
    if (!each.is_array() || each.size() < 2 || !each[0].is_string()) continue;
    if (!each[1].is_number_integer()) continue;
    const auto number = each[1].get<std::int64_t>();
    if (number < 1 || number > std::numeric_limits<int>::max()) continue;
    SourceLine line{each[0].get<std::string>(), static_cast<int>(number), ""};
    std::string& known = (*texts)[{line.file, line.line}];
    if (each.size() > 2 && each[2].is_string()) known = each[2].get<std::string>();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::optional<Place> place_from_json(const Plain& json) {
  const std::optional<Stall> stall = stall_from_name(text(json, "stall"));
  if (!stall) return std::nullopt;
  Place place;
  place.at = point_from_json(member(json, "at"));
  place.stall = *stall;
  place.share = part(json, "share");
  place.exposed = std::min(place.share, part(json, "exposed"));
  for (const Plain& item : array(json, "producers")) {
    if (!item.is_object()) continue;
    if (place.producers.size() == kMostProducers) break;
    place.producers.push_back({point_from_json(member(item, "at")), part(item, "part")});
  }
  return place;
}

}  // namespace

namespace {

Json issued_to_json(const std::vector<WorkShare>& issued) {
  Json json = Json::array();
  for (const WorkShare& each : issued) {
    json.push_back({{"kind", work_row(each.kind).name}, {"share", each.share}});
  }
  return json;
}

std::vector<WorkShare> issued_from_json(const Plain& json) {
  std::vector<WorkShare> issued;
  for (const Plain& each : json) {
    if (issued.size() == kWorkKinds) break;
    const auto kind = each.is_object() ? work_from_name(text(each, "kind")) : std::nullopt;
    if (kind) issued.push_back({*kind, part(each, "share")});
  }
  return issued;
}

Json regions_to_json(const std::vector<IssueRegion>& regions) {
  Json json = Json::array();
  for (const IssueRegion& each : regions) {
    json.push_back({{"file", each.line.file},
                    {"line", each.line.line},
                    {"text", each.line.text},
                    {"first", each.first},
                    {"last", each.last},
                    {"share", each.share},
                    {"kind", work_row(each.kind).name}});
  }
  return json;
}

std::vector<IssueRegion> regions_from_json(const Plain& json) {
  std::vector<IssueRegion> regions;
  for (const Plain& each : json) {
    if (regions.size() == kMostRegions) break;
    const auto kind = each.is_object() ? work_from_name(text(each, "kind")) : std::nullopt;
    if (!kind) continue;
    regions.push_back({line_from_json(each), natural(each, "first"), natural(each, "last"),
                       part(each, "share"), *kind});
  }
  return regions;
}

Json waits_to_json(const std::vector<RoleWait>& waits) {
  Json json = Json::array();
  for (const RoleWait& each : waits) {
    json.push_back({{"stall", stall_row(each.stall).name},
                    {"share", each.share},
                    {"file", each.line.file},
                    {"line", each.line.line},
                    {"text", each.line.text},
                    {"at_line", each.at_line}});
  }
  return json;
}

std::vector<RoleWait> waits_from_json(const Plain& json) {
  std::vector<RoleWait> waits;
  for (const Plain& each : json) {
    if (waits.size() == kMostRoleWaits) break;
    const auto stall = each.is_object() ? stall_from_name(text(each, "stall")) : std::nullopt;
    if (!stall) continue;
    waits.push_back({*stall, part(each, "share"), line_from_json(each), part(each, "at_line")});
  }
  return waits;
}

}  // namespace

Json roles_to_json(const std::vector<WarpRole>& roles) {
  Json json = Json::array();
  for (const WarpRole& each : roles) {
    json.push_back({{"file", each.file},
                    {"first", each.first},
                    {"last", each.last},
                    {"share", each.share},
                    {"awaits", each.awaits},
                    {"ready", each.ready},
                    {"waits", waits_to_json(each.waits)}});
  }
  return json;
}

std::vector<WarpRole> roles_from_json(const Plain& json) {
  std::vector<WarpRole> roles;
  for (const Plain& each : json) {
    if (roles.size() == kMostRoles) break;
    if (!each.is_object()) continue;
    roles.push_back({text(each, "file"), natural(each, "first"), natural(each, "last"),
                     part(each, "share"), part(each, "awaits"), part(each, "ready"),
                     waits_from_json(array(each, "waits"))});
  }
  return roles;
}

Json places_to_json(const Places& places) {
  Json stalls = Json::array();
  for (const StallShare& each : places.stalls) {
    stalls.push_back(
        {{"stall", stall_row(each.stall).name}, {"share", each.share}, {"exposed", each.exposed}});
  }
  Json list = Json::array();
  for (const Place& place : places.places) {
    Json producers = Json::array();
    for (const Producer& producer : place.producers) {
      producers.push_back({{"at", point_to_json(producer.at)}, {"part", producer.part}});
    }
    list.push_back({{"at", point_to_json(place.at)},
                    {"stall", stall_row(place.stall).name},
                    {"share", place.share},
                    {"exposed", place.exposed},
                    {"producers", std::move(producers)}});
  }
  Json json = {{"basis", kBases[static_cast<std::size_t>(places.basis)]},
               {"samples", places.samples},
               {"single_producer", places.single_producer},
               {"stalls", std::move(stalls)},
               {"places", std::move(list)}};
  if (!places.issued.empty()) json["issued"] = issued_to_json(places.issued);
  if (!places.regions.empty()) json["regions"] = regions_to_json(places.regions);
  if (!places.roles.empty()) json["roles"] = roles_to_json(places.roles);
  return json;
}

std::optional<Places> places_from_json(const Plain& json) {
  const auto* basis = std::find(std::begin(kBases), std::end(kBases), text(json, "basis"));
  if (basis == std::end(kBases)) return std::nullopt;
  Places places;
  places.basis = static_cast<Places::Basis>(basis - std::begin(kBases));
  places.samples = amount(json, "samples");
  places.single_producer = part(json, "single_producer");
  for (const Plain& item : array(json, "stalls")) {
    const std::optional<Stall> stall = stall_from_name(text(item, "stall"));
    if (!stall) continue;
    const double share = part(item, "share");
    places.stalls.push_back({*stall, share, std::min(share, part(item, "exposed"))});
  }
  places.issued = issued_from_json(array(json, "issued"));
  places.regions = regions_from_json(array(json, "regions"));
  places.roles = roles_from_json(array(json, "roles"));
  for (const Plain& item : array(json, "places")) {
    if (places.places.size() == kMostPlaces) break;
    if (std::optional<Place> place = place_from_json(item)) {
      places.places.push_back(std::move(*place));
    }
  }
  return places;
}

std::string_view site_name(SiteKind kind) { return kSites[static_cast<std::size_t>(kind)]; }

Json lines_to_json(const std::map<std::string, CodeLines>& lines) {
  Json json = Json::object();
  std::set<LineKey> told;
  for (const auto& [metric, each] : lines) {
    json[metric]["at"] = refs_to_json(each.lines, &told);
    if (!each.callers.empty()) json[metric]["called"] = refs_to_json(each.callers, &told);
  }
  return json;
}

std::map<std::string, CodeLines> lines_from_json(const Plain& json) {
  std::map<std::string, CodeLines> lines;
  if (!json.is_object()) return lines;
  std::map<LineKey, std::string> texts;
  for (const auto& [metric, each] : json.items()) {
    CodeLines found{refs_from_json(array(each, "at"), &texts),
                    refs_from_json(array(each, "called"), &texts)};
    if (!found.lines.empty()) lines.emplace(metric, std::move(found));
  }
  for (auto& [metric, each] : lines) {
    for (auto* part : {&each.lines, &each.callers}) {
      for (SourceLine& line : *part) line.text = texts[{line.file, line.line}];
    }
  }
  return lines;
}

CodeLines lines_from_text(const std::string& text) {
  CodeLines found;
  for (const std::string& part : split(text, ',')) {
    const std::string name(trim(part));
    const std::size_t colon = name.rfind(':');
    if (colon == std::string::npos || found.lines.size() == kMostLines) continue;
    int line = 0;
    const char* end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + colon + 1, end, line);
    if (read.ec != std::errc() || read.ptr != end || line < 1) continue;
    found.lines.push_back({name.substr(0, colon), line, ""});
  }
  return found;
}

Json sites_to_json(const std::vector<SourceSite>& sites) {
  Json json = Json::array();
  for (const SourceSite& site : sites) {
    Json item = source_line_json(site.line);
    item["kind"] = site_name(site.kind);
    if (site.last > site.line.line) item["last"] = site.last;
    if (!site.name.empty()) item["name"] = site.name;
    json.push_back(std::move(item));
  }
  return json;
}

std::vector<SourceSite> sites_from_json(const Plain& json) {
  std::vector<SourceSite> sites;
  if (!json.is_array()) return sites;
  for (const Plain& item : json) {
    if (sites.size() == kMostSites) break;
    const auto* kind = std::find(std::begin(kSites), std::end(kSites), text(item, "kind"));
    SourceSite site{SiteKind::kKernel, line_from_json(item), natural(item, "last"),
                    text(item, "name")};
    if (kind == std::end(kSites) || site.line.file.empty() || site.line.line < 1) continue;
    site.kind = static_cast<SiteKind>(kind - std::begin(kSites));
    site.last = std::max(site.last, site.line.line);
    sites.push_back(std::move(site));
  }
  return sites;
}

}  // namespace kernelpro
