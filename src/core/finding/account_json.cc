// SPDX-License-Identifier: Apache-2.0
#include "core/finding/account_json.h"

#include <algorithm>

#include "core/evidence/places_json.h"

namespace kernelpro {

SourceLine read_source_line(const Json& json) {
  const JsonReader r(json);
  return {r.text("file"), static_cast<int>(r.integer("line")), r.text("text")};
}

namespace {

Json parts_json(const std::vector<AccountPart>& parts) {
  Json list = Json::array();
  for (const AccountPart& part : parts) {
    Json item = {{"part", part_row(part.kind).name}, {"us", part.us}};
    if (part.stall) item["stall"] = stall_row(*part.stall).name;
    item["level"] = level_name(part.level);
    if (!part.how.empty()) item["how"] = part.how;
    list.push_back(std::move(item));
  }
  return list;
}

// A part that this version does not know counts as unknown, so that sums stay right.
std::vector<AccountPart> read_parts(const Json& list) {
  std::vector<AccountPart> parts;
  for (const Json& item : list) {
    const JsonReader r(item);
    AccountPart part;
    const std::string name = r.text("part");
    for (int i = 0; i < kPartKinds; ++i) {
      const auto kind = static_cast<PartKind>(i);
      if (part_row(kind).name == name) part.kind = kind;
    }
    if (part.kind == PartKind::kWait) part.stall = stall_from_name(r.text("stall"));
    part.us = std::max(0.0, r.real("us"));
    part.level = level_from_name(r.text("level")).value_or(part.level);
    part.how = r.text("how");
    parts.push_back(std::move(part));
  }
  return parts;
}

Json kernel_json(const KernelAccount& kernel) {
  Json json = {{"kernel", kernel.kernel}, {"us", kernel.us}, {"parts", parts_json(kernel.parts)}};
  if (!kernel.launched_by.empty()) json["launched_by"] = kernel.launched_by;
  if (!kernel.hidden.empty()) {
    Json hidden = Json::array();
    for (const HiddenWait& wait : kernel.hidden) {
      hidden.push_back({{"stall", stall_row(wait.stall).name}, {"us", wait.us}});
    }
    json["hidden"] = std::move(hidden);
  }
  if (!kernel.places.empty()) {
    Json places = Json::array();
    for (const CostlyPlace& place : kernel.places) places.push_back(costly_place_json(place));
    json["places"] = std::move(places);
    json["places_level"] = level_name(kernel.places_level);
  }
  if (!kernel.mix.empty()) {
    Json mix = Json::array();
    for (const WorkShare& each : kernel.mix) {
      mix.push_back({{"kind", work_row(each.kind).name}, {"share", each.share}});
    }
    if (kernel.hot_instructions > 0) json["hot_instructions"] = kernel.hot_instructions;
    json["mix"] = std::move(mix);
  }
  if (!kernel.regions.empty()) {
    Json regions = Json::array();
    for (const IssueRegion& each : kernel.regions) {
      Json at = source_line_json(each.line);
      at.update({{"first", each.first},
                 {"last", each.last},
                 {"share", each.share},
                 {"kind", work_row(each.kind).name}});
      regions.push_back(std::move(at));
    }
    json["issues_at"] = std::move(regions);
  }
  if (!kernel.roles.empty()) json["roles"] = roles_to_json(kernel.roles);
  if (kernel.issuing > 0) json["issuing"] = kernel.issuing;
  if (kernel.warp_issuing > 0) json["warp_issuing"] = kernel.warp_issuing;
  json["memory_bound"] = kernel.memory_bound;
  return json;
}

KernelAccount read_kernel(const Json& json) {
  const JsonReader r(json);
  KernelAccount kernel;
  kernel.kernel = r.text("kernel");
  kernel.launched_by = r.text("launched_by");
  kernel.us = std::max(0.0, r.real("us"));
  kernel.parts = read_parts(r.array("parts"));
  for (const Json& item : r.array("hidden")) {
    const JsonReader hidden(item);
    const std::optional<Stall> stall = stall_from_name(hidden.text("stall"));
    if (stall) kernel.hidden.push_back({*stall, std::max(0.0, hidden.real("us"))});
  }
  for (const Json& item : r.array("places")) kernel.places.push_back(read_costly_place(item));
  kernel.places_level = level_from_name(r.text("places_level")).value_or(kernel.places_level);
  kernel.hot_instructions = r.real("hot_instructions");
  for (const Json& item : r.array("mix")) {
    const JsonReader each(item);
    const auto kind = work_from_name(each.text("kind"));
    if (kind) kernel.mix.push_back({*kind, each.real("share")});
  }
  for (const Json& item : r.array("issues_at")) {
    const JsonReader each(item);
    const auto kind = work_from_name(each.text("kind"));
    if (!kind || kernel.regions.size() == kMostRegions) continue;
    kernel.regions.push_back(
        {{each.text("file"), static_cast<int>(each.integer("line")), each.text("text")},
         static_cast<int>(each.integer("first")),
         static_cast<int>(each.integer("last")),
         each.real("share"),
         *kind});
  }
  kernel.roles = roles_from_json(r.array("roles"));
  kernel.issuing = r.real("issuing");
  kernel.warp_issuing = r.real("warp_issuing");
  kernel.memory_bound = r.flag("memory_bound");
  return kernel;
}

Json lines_json(const std::vector<SourceLine>& lines) {
  Json json = Json::array();
  for (const SourceLine& each : lines) json.push_back(source_line_json(each));
  return json;
}

std::vector<SourceLine> read_callers(const JsonReader& r) {
  std::vector<SourceLine> callers;
  for (const Json& each : r.array("called")) {
    if (callers.size() < kMostCallers) callers.push_back(read_source_line(each));
  }
  return callers;
}

}  // namespace

Json costly_place_json(const CostlyPlace& place) {
  Json json = {{"at", source_line_json(place.line)},
               {"offset", place.offset},
               {"instruction", place.instruction},
               {"stall", stall_row(place.stall).name},
               {"share", place.share},
               {"us", place.us},
               {"gain", place.gain}};
  if (place.also > 0) json["also"] = place.also;
  if (place.because) {
    json["because"] = {{"at", source_line_json(place.because->line)},
                       {"offset", place.because->offset},
                       {"instruction", place.because->instruction}};
    const auto& callers = place.because->callers;
    if (!callers.empty()) json["because"]["called"] = lines_json(callers);
  }
  if (!place.callers.empty()) json["called"] = lines_json(place.callers);
  if (!place.condition.empty()) json["goes_if"] = place.condition;
  return json;
}

CostlyPlace read_costly_place(const Json& json) {
  const JsonReader r(json);
  CostlyPlace place;
  place.line = read_source_line(r.object("at"));
  place.offset = static_cast<int>(r.integer("offset"));
  place.instruction = r.text("instruction");
  place.stall = stall_from_name(r.text("stall")).value_or(Stall::kMisc);
  place.share = r.real("share");
  place.also = r.real("also");
  place.us = r.real("us");
  place.gain = r.real("gain", 1);
  if (r.member("because") != nullptr) {
    const JsonReader because(r.object("because"));
    place.because = CodePoint{read_source_line(because.object("at")),
                              static_cast<int>(because.integer("offset")),
                              because.text("instruction"), read_callers(because)};
  }
  place.callers = read_callers(r);
  place.condition = r.text("goes_if");
  return place;
}

Json account_json(const Account& account) {
  Json kernels = Json::array();
  for (const KernelAccount& kernel : account.kernels) kernels.push_back(kernel_json(kernel));
  Json json = {{"us", account.us}, {"parts", parts_json(account.parts)}, {"kernels", kernels}};
  if (account.operators.empty()) return json;
  Json operators = Json::array();
  for (const OperatorCost& each : account.operators) {
    operators.push_back({{"name", each.name},
                         {"where", each.where},
                         {"kind", operator_kind_name(each.kind)},
                         {"us", each.us},
                         {"floor_us", each.floor_us}});
  }
  json["operators"] = std::move(operators);
  return json;
}

Account read_account(const Json& json) {
  const JsonReader r(json);
  Account account;
  account.us = std::max(0.0, r.real("us"));
  account.parts = read_parts(r.array("parts"));
  for (const Json& item : r.array("kernels")) account.kernels.push_back(read_kernel(item));
  for (const Json& item : r.array("operators")) {
    if (account.operators.size() == kMostOperatorCosts) break;
    const JsonReader each(item);
    account.operators.push_back(
        {each.text("name"), each.text("where"),
         operator_kind_from_name(each.text("kind")).value_or(OperatorKind::kOther),
         std::max(0.0, each.real("us")), std::max(0.0, each.real("floor_us"))});
  }
  return account;
}

}  // namespace kernelpro
