// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "report/html.h"

namespace kernelpro {

namespace {

constexpr double kWidth = 960, kHeight = 340;
constexpr double kLeft = 62, kRight = 936, kTop = 22, kBottom = 284;

struct Scale {
  double x_max = 1;
  double y_min = 1, y_max = 2;
  bool logarithmic = false;
  double x(double seconds) const { return kLeft + (kRight - kLeft) * seconds / x_max; }
  double y(double speedup) const {
    const auto f = [&](double v) { return logarithmic ? std::log(v) : v; };
    const double at = (f(std::max(speedup, y_min)) - f(y_min)) / (f(y_max) - f(y_min));
    return kBottom - (kBottom - kTop) * std::min(at, 1.0);
  }
};

std::vector<double> y_ticks(const Scale& scale) {
  std::vector<double> ticks;
  if (scale.logarithmic) {
    for (double v = 1.0 / 1024; v <= scale.y_max * 1.001; v *= 2) {
      if (v >= scale.y_min * 0.999) ticks.push_back(v);
    }
    while (ticks.size() > 9) {
      std::vector<double> fewer;
      for (std::size_t i = ticks.size() % 2 == 0 ? 1 : 0; i < ticks.size(); i += 2) {
        fewer.push_back(ticks[i]);
      }
      ticks = fewer;
    }
    return ticks;
  }
  const double step = nice_step(scale.y_max - scale.y_min, 5);
  for (double v = std::ceil(scale.y_min / step) * step; v <= scale.y_max * 1.0001; v += step) {
    ticks.push_back(v);
  }
  return ticks;
}

std::string axes(const Scale& scale) {
  std::string svg;
  for (const double v : y_ticks(scale)) {
    svg += svg_line("grid", kLeft, scale.y(v), kRight, scale.y(v));
    svg += svg_label("tick end", kLeft - 8, scale.y(v) + 4, number(v, 3) + "x");
  }
  const double step = nice_step(scale.x_max, 8);
  for (double v = 0; v <= scale.x_max * 1.0001; v += step) {
    svg += svg_label("tick middle", scale.x(v), kBottom + 18, number(v, 4));
  }
  svg += svg_line("axis", kLeft, kBottom, kRight, kBottom);
  svg += svg_label("axis-label middle", (kLeft + kRight) / 2, kBottom + 42, "run time (s)");
  svg += "<text class=\"axis-label middle\" transform=\"rotate(-90 14 " +
         coordinate((kTop + kBottom) / 2) + ")\" x=\"14\" y=\"" + coordinate((kTop + kBottom) / 2) +
         "\">speed-up over the start</text>";
  return svg;
}

struct Mark {
  const StoredCandidate* candidate;
  double speedup;  // 0: failed
};

std::vector<Mark> marks(const RunView& view, const Story& story) {
  std::vector<Mark> result;
  for (const StoredCandidate& candidate : view.candidates) {
    if (!candidate.evaluated) continue;
    result.push_back({&candidate, story.speedup_of(candidate.known.id)});
  }
  std::sort(result.begin(), result.end(),
            [](const Mark& a, const Mark& b) { return a.candidate->order < b.candidate->order; });
  return result;
}

Scale fit(const std::vector<Mark>& all, double ceiling) {
  Scale scale;
  double high = 1.05, low = 1;
  for (const Mark& mark : all) {
    scale.x_max = std::max(scale.x_max, mark.candidate->at_s);
    if (mark.speedup <= 0) continue;
    high = std::max(high, mark.speedup);
    low = std::min(low, mark.speedup);
  }
  if (ceiling > high && ceiling < 2.5 * high) high = ceiling;
  scale.logarithmic = high / low > 4;
  scale.y_max = scale.logarithmic ? high * 1.15 : high + (high - low) * 0.08;
  scale.y_min = scale.logarithmic ? std::max(low * 0.87, high / 2000)
                                  : std::max(0.0, low - (high - low) * 0.06);
  return scale;
}

std::string best_line(const std::vector<Mark>& all, const Scale& scale) {
  std::string path;
  double best = 0;
  for (const Mark& mark : all) {
    if (mark.speedup <= best) continue;
    const std::string x = coordinate(scale.x(mark.candidate->at_s));
    path += path.empty() ? "M" + x + " " : "H" + x + " V";
    path += coordinate(scale.y(mark.speedup)) + " ";
    best = mark.speedup;
  }
  return path.empty() ? ""
                      : "<path class=\"best-line\" d=\"" + path + "H" + coordinate(kRight) + "\"/>";
}

std::string dot(const Mark& mark, const Scale& scale, const Story& story) {
  const Known& known = mark.candidate->known;
  const std::string css = outcome_class(*mark.candidate, story);
  const std::string title =
      "#" + std::to_string(known.id) + " " +
      (mark.speedup > 0 ? speedup_text(mark.speedup) + ", " + human_us(score_us(known.evaluation))
                        : outcome_name(known.evaluation.outcome));
  const std::string x = coordinate(scale.x(mark.candidate->at_s));
  const std::string id = "\" data-id=\"" + std::to_string(known.id) + "\"";
  if (mark.speedup <= 0) {
    return "<path class=\"node " + css + id + " d=\"M" + x + " " + coordinate(kBottom - 9) +
           " v8\"><title>" + escape(title) + "</title></path>";
  }
  const bool big = stands_out(*mark.candidate, story);
  return "<circle class=\"node " + css + id + " cx=\"" + x + "\" cy=\"" +
         coordinate(scale.y(mark.speedup)) + "\" r=\"" + (big ? "6" : "3.4") + "\"><title>" +
         escape(title) + "</title></circle>";
}

}  // namespace

double nice_step(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

std::string svg_line(const char* css, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + std::string(css) + "\" x1=\"" + coordinate(x1) + "\" y1=\"" +
         coordinate(y1) + "\" x2=\"" + coordinate(x2) + "\" y2=\"" + coordinate(y2) + "\"/>";
}

std::string svg_label(const char* css, double x, double y, const std::string& text) {
  return "<text class=\"" + std::string(css) + "\" x=\"" + coordinate(x) + "\" y=\"" +
         coordinate(y) + "\">" + escape(text) + "</text>";
}

std::string coordinate(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f", std::isfinite(value) ? value : 0.0);
  return buffer;
}

std::string progress_chart(const RunView& view, const Story& story) {
  const std::vector<Mark> all = marks(view, story);
  if (all.empty() || story.baseline == nullptr)
    return "<p class=\"quiet\">Nothing to draw yet.</p>";
  const double ceiling = story.baseline_fraction > 0 ? 1 / story.baseline_fraction : 0;
  const Scale scale = fit(all, ceiling);
  std::string svg = "<div class=\"scroll\"><svg class=\"chart\" viewBox=\"0 0 " +
                    coordinate(kWidth) + " " + coordinate(kHeight) +
                    "\" role=\"img\" aria-label=\"best speed-up over run time\">" + axes(scale);
  if (ceiling > 0 && ceiling <= scale.y_max) {
    svg += svg_line("ceiling", kLeft, scale.y(ceiling), kRight, scale.y(ceiling));
    svg += svg_label("ceiling-label end", kRight, scale.y(ceiling) - 6, "measured ceiling");
  }
  svg += best_line(all, scale);
  for (const Mark& mark : all) svg += dot(mark, scale, story);
  return svg + "</svg></div>";
}

std::string ceiling_bar(const Story& story) {
  if (story.fraction <= 0) return "";
  const auto at = [](double fraction) { return coordinate(std::min(fraction, 1.0) * 100) + "%"; };
  std::string html =
      "<div class=\"bar\" role=\"img\" aria-label=\"share of the measured ceiling\">"
      "<div class=\"bar-fill\" style=\"width:" +
      at(story.fraction) + "\"></div>";
  const bool moved = story.baseline_fraction > 0 && story.baseline != story.best;
  const std::string from(baseline_words(story));
  const std::string share = escape(ceiling_share(story.baseline_fraction));
  if (moved) {
    html += "<div class=\"bar-mark\" style=\"left:" + at(story.baseline_fraction) + "\" title=\"" +
            from + ": " + share + "\"></div>";
  }
  html += "</div><div class=\"bar-legend\"><span>0</span><span>";
  if (moved) html += from + " " + share + " &rarr; ";
  return html + "<b>" + escape(ceiling_share(story.fraction)) +
         "</b> of the measured ceiling</span><span>100&nbsp;%</span></div>";
}

}  // namespace kernelpro
