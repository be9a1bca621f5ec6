// SPDX-License-Identifier: Apache-2.0
#include "search/parameters.h"

#include <cstdio>

#include "base/text.h"

namespace kernelpro {

namespace {

SearchParameters plain() { return {}; }

SearchParameters paper() {
  SearchParameters p;
  p.temperatures = {0.2, 0.4, 0.6, 0.8, 1.0};
  p.seeds = 15;
  p.candidates = 2;
  p.iterations = 30;
  p.endgame = 0;
  return p;
}

SearchParameters stanford() {
  SearchParameters p;
  p.rounds = 5;
  p.ideas = 4;
  p.implementations = 3;
  p.bank = 3;
  return p;
}

constexpr Preset kPresets[] = {
    {"default", "KernelPro's own setting of any search.", "", plain, 0},
    {"paper",
     "KernelPro's paper: 15 seeds (5 temperatures, 3 rounds), then 30 turns of 2 candidates.",
     "mcts", paper, 1 + 15 + 30 * 2},
    {"stanford",
     "Stanford CRFM's: 5 rounds of 4 ideas, 3 implementations each; a bank of 3 seeds each round.",
     "branches", stanford, 1 + 5 * 4 * 3},
};

struct Limit {
  const char* name;
  double value, least, most;
};

}  // namespace

Result<void> check(const SearchParameters& p) {
  const Limit limits[] = {{"seeds", double(p.seeds), 0, 1e6},
                          {"candidates", double(p.candidates), 0, 1000},
                          {"iterations", double(p.iterations), 0, 1e6},
                          {"ceiling", p.ceiling, 0, 100},
                          {"exploration", p.exploration, 0, 100},
                          {"widening", p.widening, 1e-3, 1000},
                          {"exponent", p.exponent, 0, 1},
                          {"quality", p.quality, 0, 100},
                          {"prune_factor", p.prune_factor, 1.01, 1e6},
                          {"patience", double(p.patience), 0, 1e6},
                          {"least_scale", p.least_scale, 1.001, 1000},
                          {"diagnosis", p.diagnosis, 0, 10},
                          {"kept", p.kept, 0, 1},
                          {"endgame", p.endgame, 0, 1},
                          {"rounds", double(p.rounds), 1, 1e6},
                          {"ideas", double(p.ideas), 1, 1000},
                          {"implementations", double(p.implementations), 1, 1000},
                          {"bank", double(p.bank), 1, 1000},
                          {"beam_width", double(p.beam_width), 1, 1e6},
                          {"beam_tries", double(p.beam_tries), 1, 1e6},
                          {"tries", double(p.tries), 0, 1e9}};
  for (const Limit& limit : limits) {
    if (limit.value >= limit.least && limit.value <= limit.most) continue;
    char text[160];
    std::snprintf(text, sizeof text, "the search setting %s cannot be %g", limit.name, limit.value);
    char next[160];
    std::snprintf(next, sizeof next, "give %g to %g", limit.least, limit.most);
    return fail(ErrorKind::kBadInput, text, next);
  }
  for (const double temperature : p.temperatures) {
    if (temperature >= 0 && temperature <= 2) continue;
    return fail(ErrorKind::kBadInput, "a temperature of the seeds is not between 0 and 2",
                "give temperatures from 0 to 2, or none");
  }
  if (!p.temperatures.empty() && p.seeds == 0) {
    return fail(ErrorKind::kBadInput, "temperatures are given for seeds, but there are no seeds",
                "set seeds above 0, or give no temperatures");
  }
  return {};
}

std::span<const Preset> presets() { return kPresets; }
std::string preset_names() { return names_of(kPresets); }

Result<const Preset*> find_preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return fail(ErrorKind::kBadInput, "there is no preset \"" + std::string(name) + "\"",
              "use one of: " + replace_all(preset_names(), "|", ", "));
}

}  // namespace kernelpro
