// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/causes.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostLines = 3;
constexpr std::size_t kMostCalls = 2;
constexpr std::size_t kMostSitesNamed = 2;
constexpr std::size_t kMostDefinitionsNamed = 3;
constexpr const char* kCalledAt = "called at";

// What a line costs: the waits at it, and those that it causes.
double cost_of(const Facts& facts, const SourceLine& line) {
  const Places* places = facts.places();
  if (places == nullptr) return 0;
  double cost = 0;
  for (const Place& place : places->places) {
    const double waits = std::max(place.exposed, 1e-3 * place.share);
    if (place.at.line.same_place(line)) cost += waits;
    for (const Producer& producer : place.producers) {
      if (producer.at.line.same_place(line)) cost += waits * producer.part;
    }
  }
  return cost;
}

std::vector<SourceLine> costliest(const Facts& facts, const std::vector<SourceLine>& lines,
                                  std::size_t most) {
  std::vector<std::pair<double, SourceLine>> order;
  for (const SourceLine& line : lines) order.emplace_back(cost_of(facts, line), line);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SourceLine> result;
  for (const auto& [cost, line] : order) {
    if (result.size() < most) result.push_back(line);
  }
  return result;
}

const CodeLines* first_lines(const Facts& facts, std::initializer_list<const char*> metrics) {
  for (const char* metric : metrics) {
    const CodeLines* lines = facts.lines(metric);
    if (lines != nullptr && !lines->lines.empty()) return lines;
  }
  return nullptr;
}

std::string role_of(const SourceSite& site) {
  switch (site.kind) {
    case SiteKind::kKernel:
      return "the kernel at";
    case SiteKind::kBounds:
      return "launch bounds at";
    case SiteKind::kPointers:
      return "parameters at";
    case SiteKind::kLaunch:
      return "launched at";
    case SiteKind::kGrid:
    case SiteKind::kBlock:
    case SiteKind::kShared:
    case SiteKind::kDepth:
      return site.name.empty() ? "set at" : "`" + site.name + "` at";
    case SiteKind::kSharedArray:
    case SiteKind::kLocalArray:
    case SiteKind::kConstant:
      return "`" + site.name + "` declared at";
    case SiteKind::kUnroll:
      return "unrolled at";
    case SiteKind::kLoop:
      return "in the loop at";
    case SiteKind::kCopy:
    case SiteKind::kSync:
    case SiteKind::kAllocate:
    case SiteKind::kDefinition:
    case SiteKind::kVariable:
      return "`" + site.name + "` at";
  }
  return "";
}

FindingSite named(const SourceSite& site) { return {site.line, role_of(site)}; }

bool names(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !in_identifier(text[at - 1])) &&
        (end == text.size() || !in_identifier(text[end]))) {
      return true;
    }
  }
  return false;
}

// The text of a line. Evidence of earlier versions has it with places and sites only.
std::string text_of(const Facts& facts, const SourceLine& line) {
  if (!line.text.empty()) return line.text;
  if (const Places* places = facts.places()) {
    for (const Place& place : places->places) {
      if (place.at.line.same_place(line) && !place.at.line.text.empty()) return place.at.line.text;
      for (const Producer& producer : place.producers) {
        if (producer.at.line.same_place(line) && !producer.at.line.text.empty()) {
          return producer.at.line.text;
        }
      }
    }
  }
  for (const SourceSite& site : facts.sites()) {
    if (site.line.same_place(line)) return site.line.text;
  }
  return "";
}

void add_lines(const Facts& facts, const std::vector<SourceLine>& lines, const std::string& role,
               FindingSites* sites) {
  for (const SourceLine& line : lines) {
    sites->push_back({{line.file, line.line, text_of(facts, line)}, role});
  }
}

// Of several definitions of one name the last one before its use counts.
bool nearest(const Facts& facts, const SourceSite& site, const SourceLine& use) {
  return std::none_of(facts.sites().begin(), facts.sites().end(), [&](const SourceSite& other) {
    return other.name == site.name && other.line.file == site.line.file &&
           (other.kind == SiteKind::kDefinition || other.kind == SiteKind::kVariable) &&
           other.line.line > site.line.line && other.line.line <= use.line;
  });
}

}  // namespace

FindingSites line_of(const Facts& facts, std::initializer_list<const char*> metrics) {
  FindingSites sites;
  const CodeLines* lines = first_lines(facts, metrics);
  if (lines == nullptr) return sites;
  add_lines(facts, costliest(facts, lines->lines, kMostLines), "", &sites);
  std::vector<SourceLine> calls;
  for (const SourceLine& call : costliest(facts, lines->callers, kMostCalls)) {
    const bool known = std::any_of(lines->lines.begin(), lines->lines.end(),
                                   [&](const SourceLine& line) { return line.same_place(call); });
    if (!known) calls.push_back(call);
  }
  add_lines(facts, calls, kCalledAt, &sites);
  return sites;
}

FindingSites waits_at(const Facts& facts, bool (*is)(std::string_view instruction)) {
  FindingSites sites;
  const Places* places = facts.places();
  if (places == nullptr) return sites;
  std::vector<SourceLine> lines, calls;
  const auto add = [](const SourceLine& line, std::size_t most, std::vector<SourceLine>* all) {
    const bool known = std::any_of(all->begin(), all->end(),
                                   [&](const SourceLine& each) { return each.same_place(line); });
    if (!known && all->size() < most && !line.file.empty()) all->push_back(line);
  };
  for (const Place& place : places->places) {
    if (place.stall == Stall::kSelected || !is(place.at.instruction)) continue;
    add(place.at.line, 2, &lines);
    for (const SourceLine& call : place.at.callers) add(call, kMostCalls, &calls);
  }
  if (lines.empty()) return sites;
  add_lines(facts, lines, "waits at", &sites);
  add_lines(facts, calls, kCalledAt, &sites);
  return sites;
}

FindingSites sites_at(const std::vector<SourceLine>& lines, std::size_t most) {
  FindingSites sites;
  for (const SourceLine& line : lines) {
    const bool known = std::any_of(sites.begin(), sites.end(), [&](const FindingSite& site) {
      return site.line.same_place(line);
    });
    if (!known && !line.file.empty() && sites.size() < most) sites.push_back({line, "", 0});
  }
  return sites;
}

FindingSites site_of(const Facts& facts, std::initializer_list<SiteKind> kinds,
                     bool (*is)(const SourceSite& site)) {
  for (const SiteKind kind : kinds) {
    FindingSites found;
    for (const SourceSite& site : facts.sites()) {
      if (site.kind != kind || found.size() == kMostSitesNamed) continue;
      if (is == nullptr || is(site)) found.push_back(named(site));
    }
    if (!found.empty()) return found;
  }
  return {};
}

FindingSites launches_of(const KernelEvidence& kernel) {
  FindingSites found;
  for (const SourceSite& site : kernel.facts.sites) {
    if (site.kind == SiteKind::kLaunch && found.size() < kMostSitesNamed)
      found.push_back(named(site));
  }
  return found;
}

FindingSites array_of(const Facts& facts, SiteKind kind,
                      std::initializer_list<const char*> metrics) {
  FindingSites found;
  const CodeLines* lines = first_lines(facts, metrics);
  if (lines == nullptr) return found;
  for (const SourceSite& site : facts.sites()) {
    if (site.kind != kind || found.size() == kMostSitesNamed) continue;
    const bool used =
        std::any_of(lines->lines.begin(), lines->lines.end(),
                    [&](const SourceLine& line) { return names(text_of(facts, line), site.name); });
    if (used) found.push_back(named(site));
  }
  return found;
}

FindingSites loop_of(const Facts& facts, std::initializer_list<const char*> metrics) {
  const CodeLines* lines = first_lines(facts, metrics);
  if (lines == nullptr) return {};
  std::vector<SourceLine> all = costliest(facts, lines->lines, 1);
  all.insert(all.end(), lines->callers.begin(), lines->callers.end());
  const SourceSite* innermost = nullptr;
  for (const SourceLine& line : all) {
    for (const SourceSite& site : facts.sites()) {
      if (site.kind != SiteKind::kLoop || site.line.file != line.file) continue;
      if (line.line < site.line.line || line.line > site.last) continue;
      if (innermost == nullptr || site.line.line > innermost->line.line) innermost = &site;
    }
    if (innermost != nullptr) break;
  }
  return innermost != nullptr ? FindingSites{named(*innermost)} : FindingSites{};
}

FindingSites depth_of(const Facts& facts, std::initializer_list<const char*> parts) {
  FindingSites found;
  for (const SourceSite& site : facts.sites()) {
    if (site.kind != SiteKind::kDepth || found.size() == kMostSitesNamed) continue;
    std::string name;
    for (const char c : site.name) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const bool fits = std::any_of(parts.begin(), parts.end(),
                                  [&](const char* part) { return contains(name, part); });
    if (fits) found.push_back(named(site));
  }
  return found;
}

FindingSites aliases_of(const Facts& facts, SiteKind kind) {
  FindingSites found;
  for (const SourceSite& site : facts.sites()) {
    if (site.kind != SiteKind::kVariable || found.size() == kMostSitesNamed) continue;
    const bool stands =
        std::any_of(facts.sites().begin(), facts.sites().end(), [&](const SourceSite& declared) {
          return declared.kind == kind && names(site.line.text, declared.name) &&
                 !contains(site.line.text, declared.name + "[") &&
                 !declared.line.same_place(site.line);
        });
    if (stands) found.push_back(named(site));
  }
  return found;
}

FindingSites definitions_of(const Facts& facts, const FindingSites& sites) {
  constexpr int kSteps = 3;
  FindingSites found;
  std::set<const SourceSite*> seen;
  std::vector<SourceLine> now;
  for (const FindingSite& site : sites) now.push_back(site.line);
  const std::vector<SourceLine> named_already = now;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<SourceLine> next;
    for (const SourceLine& line : now) {
      const std::string text = text_of(facts, line);
      for (const SourceSite& site : facts.sites()) {
        const bool definition = site.kind == SiteKind::kDefinition;
        if (!definition && site.kind != SiteKind::kVariable) continue;
        if (site.line.file != line.file || !names(text, site.name)) continue;
        if (!nearest(facts, site, line) || !seen.insert(&site).second) continue;
        next.push_back(site.line);
        const bool known =
            std::any_of(named_already.begin(), named_already.end(),
                        [&](const SourceLine& at) { return at.same_place(site.line); });
        if (definition && !known && found.size() < kMostDefinitionsNamed) {
          found.push_back(named(site));
          found.back().group = sites.empty() ? 0 : sites.back().group + 1;
        }
      }
    }
    now = std::move(next);
  }
  return found;
}

bool has_site(const Facts& facts, SiteKind kind, std::string_view name) {
  const auto& sites = facts.sites();
  return std::any_of(sites.begin(), sites.end(), [&](const SourceSite& site) {
    return site.kind == kind && (name.empty() || site.name == name);
  });
}

FindingSites joined(std::initializer_list<FindingSites> groups) {
  FindingSites sites;
  int group = 0;
  for (const FindingSites& each : groups) {
    if (each.empty()) continue;
    for (const FindingSite& site : each) sites.push_back({site.line, site.role, group});
    ++group;
  }
  return sites;
}

namespace {

// In the queue of a unit: what fills it is of the instruction's own kind, not what it reads.
bool waits_for_room(Stall stall) {
  return stall == Stall::kMioThrottle || stall == Stall::kLgThrottle ||
         stall == Stall::kTexThrottle || stall == Stall::kMathPipeThrottle;
}

}  // namespace

double exposed_by(const Facts& facts, bool (*is)(std::string_view instruction)) {
  const Places* places = facts.places();
  if (places == nullptr) return 0;
  double sum = 0;
  for (const Place& place : places->places) {
    if ((place.producers.empty() || waits_for_room(place.stall)) && is(place.at.instruction)) {
      sum += place.exposed;
      continue;
    }
    for (const Producer& producer : place.producers) {
      if (is(producer.at.instruction)) sum += place.exposed * producer.part;
    }
  }
  return std::min(1.0, sum);
}

double time_at(const Facts& facts, const FindingSites& sites) {
  const Places* places = facts.places();
  const KernelAccount* account = facts.account();
  if (places == nullptr || account == nullptr || places->basis != Places::Basis::kSampled) return 0;
  const auto named = [&](const SourceLine& line, int first, int last) {
    return std::any_of(sites.begin(), sites.end(), [&](const FindingSite& site) {
      return site.role.empty() && site.line.line >= first && site.line.line <= last &&
             site.line.file == line.file;
    });
  };
  double issued = 0, waited = 0;
  for (const IssueRegion& region : places->regions) {
    if (named(region.line, region.first, region.last)) issued += region.share;
  }
  for (const Place& place : places->places) {
    if (named(place.at.line, place.at.line.line, place.at.line.line)) waited += place.exposed;
  }
  return std::min(1.0, account->issuing * issued + waited);
}

bool waits_for_others(const Facts& facts) {
  constexpr double kMost = 0.5;
  constexpr double kFar = 200;  // instructions from one barrier to the next
  const auto waits = facts.model().stall(Stall::kBarrier);
  const auto barriers = facts.maybe("sass.hot.barriers");
  if (!waits || *waits < kMost || !barriers) return false;
  const bool far = *barriers < 1 || facts.maybe("sass.hot.between_barriers").value_or(0) >= kFar;
  return far && facts.maybe("launch__block_size").value_or(0) > 32;
}

std::optional<double> exposed(const Facts& facts, std::initializer_list<Stall> stalls) {
  const Places* places = facts.places();
  if (places == nullptr || places->stalls.empty()) return std::nullopt;
  double sum = 0;
  for (const StallShare& share : places->stalls) {
    if (std::find(stalls.begin(), stalls.end(), share.stall) != stalls.end()) sum += share.exposed;
  }
  return std::min(1.0, sum);
}

std::vector<Prescription> advice_to_split() {
  return {
      {"tensor-cores",
       "Split each fp32 operand into three bf16 parts (round to bf16, subtract, round what is "
       "left, twice) and add up six of the nine products of parts on tensor cores, the small "
       "ones first, in fp32: as precise as fp32. Two fp16 parts need three products and keep 22 "
       "bits: scale by a power of two taken from the data, for each row of one operand and each "
       "column of the other, so that no value leaves fp16's range and the low part keeps its "
       "digits.",
       "the product is too small to fill tiles of 64 x 64; two parts: sums are short, below some "
       "256 terms"},
      {"shared-memory",
       "Split once for each operand, where it is staged in shared memory or in a kernel before, "
       "not for each product.",
       ""}};
}

}  // namespace kernelpro
