// SPDX-License-Identifier: Apache-2.0
// Time against energy: every candidate that has both, and their Pareto front.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "report/html.h"
#include "report/pareto.h"

namespace kernelpro {

namespace {

constexpr double kWidth = 960, kHeight = 340;
constexpr double kLeft = 72, kRight = 936, kTop = 22, kBottom = 284;

// From the smallest to the largest value, with a small margin on both sides.
struct Axis {
  double from = 0, to = 1;
  double begin = 0, end = 1;  // drawing coordinates

  Axis(std::vector<double> values, double begin_at, double end_at) : begin(begin_at), end(end_at) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double room = std::max(0.06 * (*most - *least), 0.01 * *most);
    from = std::max(0.0, *least - room);
    to = *most + room;
  }
  double at(double value) const { return begin + (end - begin) * (value - from) / (to - from); }
  std::vector<double> ticks(int count) const {
    const double step = nice_step(to - from, count);
    std::vector<double> all;
    for (int i = static_cast<int>(from / step); i * step <= to; ++i) {
      if (i * step >= from) all.push_back(i * step);
    }
    return all;
  }
};

std::string scatter(const RunView& view, const Story& story,
                    const std::vector<const StoredCandidate*>& front) {
  std::vector<const StoredCandidate*> all;
  std::vector<double> times;
  std::vector<double> energies;
  for (const StoredCandidate& candidate : view.candidates) {
    const Energy* energy = energy_of(candidate);
    if (!candidate.evaluated || energy == nullptr) continue;
    all.push_back(&candidate);
    times.push_back(score_us(candidate.known.evaluation));
    energies.push_back(energy->millijoules);
  }
  const Axis x(times, kLeft, kRight);
  const Axis y(energies, kBottom, kTop);
  std::string svg = "<div class=\"scroll\"><svg class=\"chart\" viewBox=\"0 0 " +
                    coordinate(kWidth) + " " + coordinate(kHeight) +
                    "\" role=\"img\" aria-label=\"energy over time of a call\">";
  for (const double v : y.ticks(5)) {
    svg += svg_line("grid", kLeft, y.at(v), kRight, y.at(v));
    svg += svg_label("tick end", kLeft - 8, y.at(v) + 4, number(v, 4));
  }
  for (const double v : x.ticks(8)) {
    svg += svg_label("tick middle", x.at(v), kBottom + 18, number(v, 4));
  }
  svg += svg_line("axis", kLeft, kBottom, kRight, kBottom);
  svg += svg_label("axis-label middle", (kLeft + kRight) / 2, kBottom + 42, "time of a call (us)");
  const std::string middle = coordinate((kTop + kBottom) / 2);
  svg += "<text class=\"axis-label middle\" transform=\"rotate(-90 14 " + middle + ")\" x=\"14\" " +
         "y=\"" + middle + "\">energy of a call (mJ)</text>";
  std::string path;
  for (const StoredCandidate* each : front) {
    const std::string at = coordinate(x.at(score_us(each->known.evaluation)));
    path += (path.empty() ? "M" : "H") + at + (path.empty() ? " " : " V") +
            coordinate(y.at(energy_of(*each)->millijoules)) + " ";
  }
  svg += "<path class=\"best-line\" d=\"" + path + "\"/>";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Known& known = all[i]->known;
    const std::string css = outcome_class(*all[i], story);
    const bool big = stands_out(*all[i], story);
    svg += "<circle class=\"node " + css + "\" data-id=\"" + std::to_string(known.id) + "\" cx=\"" +
           coordinate(x.at(times[i])) + "\" cy=\"" + coordinate(y.at(energies[i])) + "\" r=\"" +
           (big ? "6" : "3.4") + "\"><title>#" + std::to_string(known.id) + " " +
           human_us(times[i]) + ", " + number(energies[i], 4) + " mJ</title></circle>";
  }
  return svg + "</svg></div>";
}

}  // namespace

std::string energy_section(const RunView& view, const Story& story) {
  const std::vector<const StoredCandidate*> front = pareto_front(view);
  if (front.empty()) return "";
  std::string html;
  const Correct* winner = view.confirmation ? view.confirmation->evaluation.correct() : nullptr;
  if (winner != nullptr && winner->energy) {
    html +=
        "<p>The winner, compared with the start: " + escape(energy_text(*winner->energy)) + "</p>";
  }
  html += scatter(view, story, front);
  html +=
      "<div class=\"scroll\"><table class=\"steps\"><thead><tr><th>#</th><th>time</th>"
      "<th>energy</th><th>95&nbsp;% interval</th><th>power</th><th>idle</th><th>knobs</th></tr>"
      "</thead><tbody>";
  for (const StoredCandidate* candidate : front) {
    const Known& known = candidate->known;
    const Energy& energy = *energy_of(*candidate);
    html += "<tr><td>" + std::to_string(known.id) + "</td><td class=\"num\">" +
            human_us(score_us(known.evaluation)) + "</td><td class=\"num\">" +
            number(energy.millijoules, 4) + " mJ</td><td class=\"num\">" + number(energy.low, 4) +
            " &ndash; " + number(energy.high, 4) + "</td><td class=\"num\">" +
            number(energy.busy_w, 4) + " W</td><td class=\"num\">" + number(energy.idle_w, 4) +
            " W</td><td><code>" + escape(clip(knobs_to_text(known.candidate.knobs), 300)) +
            "</code></td></tr>";
  }
  return html + "</tbody></table></div>";
}

}  // namespace kernelpro
