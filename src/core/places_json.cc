// SPDX-License-Identifier: Apache-2.0
#include "core/places_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/plain_json.h"

namespace kernelpro {

namespace {

constexpr std::string_view kBases[] = {"sampled", "estimated"};
constexpr std::size_t kMostProducers = 8;  // read of one place

Json point_to_json(const CodePoint& at) {
  Json json = {{"offset", at.offset}, {"code", at.instruction}};
  if (at.line.file.empty()) return json;
  json["file"] = at.line.file;
  json["line"] = at.line.line;
  if (!at.line.text.empty()) json["text"] = at.line.text;
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

double number(const Plain& json, const char* name) {
  const Plain& value = member(json, name);
  const double real = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(real) ? std::max(0.0, real) : 0;
}

double part(const Plain& json, const char* name) { return std::min(1.0, number(json, name)); }

CodePoint point_from_json(const Plain& json) {
  CodePoint at;
  at.line = {text(json, "file"), natural(json, "line"), text(json, "text")};
  at.offset = natural(json, "offset");
  at.instruction = text(json, "code");
  return at;
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
  return {{"basis", kBases[static_cast<std::size_t>(places.basis)]},
          {"samples", places.samples},
          {"single_producer", places.single_producer},
          {"stalls", std::move(stalls)},
          {"places", std::move(list)}};
}

std::optional<Places> places_from_json(const Plain& json) {
  const auto* basis = std::find(std::begin(kBases), std::end(kBases), text(json, "basis"));
  if (basis == std::end(kBases)) return std::nullopt;
  Places places;
  places.basis = static_cast<Places::Basis>(basis - std::begin(kBases));
  places.samples = number(json, "samples");
  places.single_producer = part(json, "single_producer");
  for (const Plain& item : array(json, "stalls")) {
    const std::optional<Stall> stall = stall_from_name(text(item, "stall"));
    if (!stall) continue;
    const double share = part(item, "share");
    places.stalls.push_back({*stall, share, std::min(share, part(item, "exposed"))});
  }
  for (const Plain& item : array(json, "places")) {
    if (places.places.size() == kMostPlaces) break;
    if (std::optional<Place> place = place_from_json(item)) {
      places.places.push_back(std::move(*place));
    }
  }
  return places;
}

}  // namespace kernelpro
