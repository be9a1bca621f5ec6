// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/finding/account.h"
#include "core/plan/kernel_name.h"

namespace kernelpro {

namespace {

constexpr double kLeastAlso = 0.01;  // of the kernel's time
constexpr double kLeastGainTold = 1.005;
constexpr double kLeastShown = 0.015;  // of the call
constexpr std::size_t kLineShown = 90;
constexpr double kWorthNaming = 1.01;  // of the call's gain

std::string share_text(double us, double of_us) {
  return std::to_string(of_us > 0 ? std::lround(100 * us / of_us) : 0) + " %";
}

std::string basis_words(Level level) {
  switch (level) {
    case Level::kCounters:
      return "from counters and samples";
    case Level::kStatic:
      return "estimated from machine code";
    default:
      return "from timing alone";
  }
}

constexpr std::size_t kOperatorsShown = 4;

// "by operator, with its own floor: `conv2d` (conv1) 61 % (22 %), `relu` 20 % (10 %)".
std::string operators_text(const Account& account) {
  std::string text;
  std::size_t shown = 0;
  for (const OperatorCost& each : account.operators) {
    if (shown == kOperatorsShown || each.us < kLeastShown * account.us) continue;
    ++shown;
    text += (text.empty() ? "" : ", ") + operator_words(each.name, each.where) + " " +
            share_text(each.us, account.us) + " (" + share_text(each.floor_us, account.us) + ")";
  }
  if (text.empty()) return "";
  return "- by operator, and in brackets what it needs by itself at the ceilings: " + text + "\n";
}

// On one line, not too long.
std::string shortened(const std::string& text) {
  const std::string line = one_line(text);
  return line.size() <= kLineShown ? line : std::string(utf8_prefix(line, kLineShown)) + "...";
}

// "97 % kernels, 3 % launch latency", the largest first.
std::string parts_text(std::vector<AccountPart> parts, double call_us) {
  std::stable_sort(parts.begin(), parts.end(), [](const AccountPart& a, const AccountPart& b) {
    return (a.kind != PartKind::kUnknown && b.kind == PartKind::kUnknown) ||
           ((a.kind == PartKind::kUnknown) == (b.kind == PartKind::kUnknown) && a.us > b.us);
  });
  std::string text;
  double small = 0;
  for (const AccountPart& part : parts) {
    if (part.us < kLeastShown * call_us) {
      small += part.us;
      continue;
    }
    text += (text.empty() ? "" : ", ") + share_text(part.us, call_us) + " " + part_words(part);
  }
  if (small >= kLeastShown * call_us) {
    text += (text.empty() ? "" : ", ") + share_text(small, call_us) + " smaller parts";
  }
  return text;
}

std::string place_text(const CostlyPlace& place, std::size_t position) {
  std::string text = "  " + std::to_string(position) + ". " + place_words(place) + ": " +
                     place_costs(place, "the time");
  if (!place.condition.empty()) text += ". It goes if " + place.condition;
  return text + ".\n";
}

std::string places_text(const KernelAccount& kernel) {
  const auto worth = static_cast<std::size_t>(
      std::count_if(kernel.places.begin(), kernel.places.end(),
                    [](const CostlyPlace& place) { return place.gain >= kWorthNaming; }));
  if (worth == 0) return "";
  std::string text = "- costliest places";
  if (!kernel.kernel.empty()) text += " of `" + one_line(short_kernel_name(kernel.kernel)) + "`";
  text += kernel.places_level == Level::kCounters ? ":\n" : ", estimated from machine code:\n";
  for (std::size_t i = 0; i < worth; ++i) {
    text += place_text(kernel.places[i], i + 1);
  }
  return text;
}

}  // namespace

std::string place_costs(const CostlyPlace& place, std::string_view whose) {
  const bool more = place.also >= kLeastAlso;
  std::string text =
      share_text(place.share, 1) + " of " + std::string(whose) + " " + place_cause(place);
  if (more) text += ", " + share_text(place.share + place.also, 1) + " with all that it costs";
  if (place.gain < kLeastGainTold) return text;
  return text + "; " + number(place.gain, 3) + (more ? "x if all of it went" : "x if that went");
}

std::string part_words(PartKind kind, std::optional<Stall> stall) {
  if (kind != PartKind::kWait || !stall) return std::string(part_row(kind).words);
  return "waits for " + std::string(stall_row(*stall).words);
}

std::string part_words(const AccountPart& part) { return part_words(part.kind, part.stall); }

std::string place_words(const SourceLine& line, int offset, const std::string& instruction) {
  if (line.file.empty()) {
    return "`" + shortened(instruction) + "` (byte " + std::to_string(offset) + " of the kernel)";
  }
  std::string text = one_line(line.file) + ":" + std::to_string(line.line);
  const std::string code = shortened(line.text);
  if (!code.empty() && code.find('`') == std::string::npos) text += " `" + code + "`";
  return text;
}

namespace {
// Where the kernel itself calls the inlined function that the line stands in.
std::string call_words(const SourceLine& line, const std::vector<SourceLine>& callers) {
  if (callers.empty() || callers.back().file.empty() || callers.back().same_place(line)) return "";
  return ", called at " + place_words(callers.back(), 0, "");
}
}  // namespace

std::string place_words(const CostlyPlace& place) {
  return place_words(place.line, place.offset, place.instruction) +
         call_words(place.line, place.callers);
}

// A barrier in shared memory is polled, which counts as waiting for a load.
bool at_shared_barrier(const CostlyPlace& place) {
  const auto mentions = [&](std::string_view word) {
    return contains(place.instruction, word) ||
           (place.because && contains(place.because->instruction, word));
  };
  return place.stall == Stall::kLongScoreboard &&
         (mentions("SYNCS") || mentions("UBLKCP") || mentions("UTMALDG"));
}

std::string place_cause(const CostlyPlace& place) {
  if (place.stall == Stall::kSelected) return "goes into issuing it";
  std::string text = at_shared_barrier(place)
                         ? "waits at a barrier in shared memory, for copies or other warps"
                         : "waits for " + std::string(stall_row(place.stall).words);
  if (place.because) {
    const CodePoint& at = *place.because;
    const bool same =
        at.line.file == place.line.file && at.line.line == place.line.line && !at.line.file.empty();
    text += ", because of " + (same ? "`" + one_line(at.instruction) + "` of the same line"
                                    : place_words(at.line, at.offset, at.instruction) +
                                          call_words(at.line, at.callers));
  }
  return text;
}

std::string region_words(const IssueRegion& region) {
  std::string text = region.line.file + ":" + number(region.first);
  if (region.last > region.first) text += "-" + number(region.last);
  return region.line.text.empty() ? text : text + " `" + one_line(region.line.text) + "`";
}

std::string role_words(const WarpRole& role) {
  std::string text = role.file + ":" + number(role.first);
  if (role.last > role.first) text += "-" + number(role.last);
  return text;
}

const WarpRole* pace_setter(const std::vector<WarpRole>& roles) {
  constexpr double kHardly = 0.15, kOften = 0.25;  // of a role's time
  const auto busiest = std::ranges::min_element(roles, {}, &WarpRole::awaits);
  if (busiest == roles.end() || busiest->awaits > kHardly) return nullptr;
  const bool others_wait = std::ranges::any_of(
      roles, [&](const WarpRole& role) { return role.awaits >= busiest->awaits + kOften; });
  return others_wait ? &*busiest : nullptr;
}

std::string role_wait_words(const RoleWait& wait) {
  std::string text =
      "wait " + share_text(wait.share, 1) + " for " + std::string(stall_row(wait.stall).words);
  if (wait.line.file.empty()) return text;
  return text + " (" + share_text(wait.at_line, 1) + " at " + place_words(wait.line, 0, "") + ")";
}

std::string roles_words(const std::vector<WarpRole>& roles) {
  if (roles.empty()) return "";
  const WarpRole* pace = pace_setter(roles);
  std::string text = "its warps have " + number(static_cast<double>(roles.size())) + " roles: ";
  for (const WarpRole& role : roles) {
    if (&role != &roles.front()) text += "; ";
    text += "those at " + role_words(role) + " wait for the others, or for copies, " +
            share_text(role.awaits, 1) + " of their time";
    if (&role != pace) continue;
    text += " and set the pace: they issue, or could, " + share_text(role.ready, 1);
    for (const RoleWait& wait : role.waits) text += ", " + role_wait_words(wait);
  }
  return text;
}

std::string mix_words(const KernelAccount& kernel) {
  std::string text;
  for (const WorkShare& each : kernel.mix) {
    text += (text.empty() ? "" : ", ") + share_text(each.share, 1) + " " +
            std::string(work_row(each.kind).words);
  }
  if (text.empty()) return "";
  if (kernel.hot_instructions > 0) {
    return "its hot loop has " + number(kernel.hot_instructions) + " instructions: " + text;
  }
  std::string where;
  for (const IssueRegion& each : kernel.regions) {
    where += (where.empty() ? "" : ", ") + share_text(each.share, 1) + " " + region_words(each) +
             " (mostly " + std::string(work_row(each.kind).words) + ")";
  }
  return "by samples, it issues " + text + (where.empty() ? "" : "; of all that, " + where);
}

std::string account_to_text(const Account& account, bool at_ceiling) {
  if (!account.known()) return "";
  std::string text = "Where the time goes, in shares of the call's " + human_us(account.us) + ", " +
                     basis_words(account.level()) +
                     ":\n- the call: " + parts_text(account.parts, account.us) + "\n";
  for (const KernelAccount& kernel : account.kernels) {
    text += "- ";
    text += kernel.kernel.empty() ? "its kernel"
                                  : "`" + one_line(short_kernel_name(kernel.kernel)) + "`";
    if (!kernel.launched_by.empty()) text += " of " + one_line(kernel.launched_by);
    text += " (" + share_text(kernel.us, account.us) +
            "): " + parts_text(kernel.parts, account.us) + "\n";
  }
  text += operators_text(account);
  if (at_ceiling) return text;
  if (!account.kernels.empty()) {
    const KernelAccount& longest = account.kernels.front();
    const std::string mix = mix_words(longest);
    const std::string name = one_line(short_kernel_name(longest.kernel));
    for (const std::string& words : {roles_words(longest.roles), mix}) {
      if (!words.empty()) text += "- " + (name.empty() ? "" : "`" + name + "`: ") + words + "\n";
    }
  }
  // Where kernels share the time, the longest one's places; the others' are in the report.
  for (const KernelAccount& kernel : account.kernels) {
    text += places_text(kernel);
    if (!kernel.places.empty()) break;
  }
  return text;
}

}  // namespace kernelpro
