// SPDX-License-Identifier: Apache-2.0
#include "cli/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "core/machine/ceiling_json.h"
#include "report/view.h"

namespace kernelpro {

namespace {

// Cuts to at most `width` bytes at a character boundary.
std::string fit(std::string text, int width) {
  if (static_cast<int>(text.size()) <= width) return text;
  std::size_t at = static_cast<std::size_t>(width);
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return text.substr(0, at);
}

bool is_news(const Progress& progress) { return progress.event != Event::kEvaluated; }

// One line per news event above a redrawn status line.
struct Terminal {
  std::FILE* out;
  int width;

  void show(const Progress& progress) const {
    const int columns = width > 0 ? width : terminal_columns(out);
    std::string text = "\r\x1b[K";
    if (is_news(progress)) text += fit(event_line(progress), columns - 1) + "\n";
    const bool over = progress.event == Event::kStopped || progress.event == Event::kConfirmed;
    if (!over && progress.evaluations > 0) text += status_line(progress, columns - 1);
    std::fputs(text.c_str(), out);
    std::fflush(out);
  }
};

}  // namespace

int terminal_columns(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
}

DisplayKind display_kind(bool json, std::FILE* out) {
  if (json) return DisplayKind::kJson;
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string(term) == "dumb";
  return isatty(fileno(out)) != 0 && !dumb ? DisplayKind::kTerminal : DisplayKind::kLines;
}

namespace {

// "[3/60] ", or "[3] " without a limit.
std::string count_text(const Progress& progress) {
  std::string text = "[" + std::to_string(progress.evaluations);
  if (progress.max_evaluations > 0) text += "/" + std::to_string(progress.max_evaluations);
  return text + "] ";
}

// Interval of the best so far; only the confirmation gives a final figure.
std::string unconfirmed_text(const Progress& progress) {
  if (progress.best_speedup_low >= progress.best_speedup_high) return "";
  const bool open = !(progress.best_speedup_low > 0) || !std::isfinite(progress.best_speedup_high);
  if (open) return " (unconfirmed)";
  return " (" + speedup_text(progress.best_speedup_low) + " to " +
         speedup_text(progress.best_speedup_high) + ", unconfirmed)";
}

std::string ceiling_text(const Progress& progress) {
  if (progress.fraction_of_ceiling <= 0) return "";
  return ", " + ceiling_share(progress.fraction_of_ceiling) + " of " +
         (progress.ceiling_disturbed ? "a ceiling measured on a busy machine" : "ceiling");
}

}  // namespace

std::string status_line(const Progress& progress, int width) {
  std::string text = count_text(progress) + "best " + speedup_text(progress.best_speedup) +
                     unconfirmed_text(progress);
  if (progress.best_us > 0) text += " " + human_us(progress.best_us);
  text += ceiling_text(progress);
  if (progress.left_s > 0) text += ", " + human_seconds(progress.left_s) + " left";
  if (progress.failures > 0) text += ", failed: " + progress.failures_by_kind;
  return fit(text, width);
}

std::string event_line(const Progress& progress) {
  if (progress.event == Event::kBusy) return "busy: " + one_line(progress.detail);
  std::string text(event_name(progress.event));
  if (progress.candidate > 0) text += " #" + std::to_string(progress.candidate);
  if (!progress.outcome.empty()) text += " " + progress.outcome;
  if (progress.time_us > 0) text += " " + human_us(progress.time_us);
  if (progress.event == Event::kBest) {
    text += ", " + speedup_text(progress.best_speedup) + " over the start" +
            unconfirmed_text(progress) + ceiling_text(progress);
  }
  if (!progress.knobs.empty()) text += "  " + one_line(progress.knobs);
  if (!progress.detail.empty()) text += "  " + one_line(progress.detail);
  return text;
}

std::string progress_json(const Progress& progress) {
  Json json = {{"event", event_name(progress.event)},
               {"candidate", progress.candidate},
               {"outcome", progress.outcome},
               {"detail", progress.detail},
               {"knobs", progress.knobs},
               {"evaluations", progress.evaluations},
               {"max_evaluations", progress.max_evaluations},
               {"failures", progress.failures},
               {"failures_by_kind", progress.failures_by_kind},
               {"time_us", progress.time_us},
               {"best_us", progress.best_us},
               {"best_speedup", progress.best_speedup},
               {"best_speedup_low", progress.best_speedup_low},
               {"best_speedup_high", progress.best_speedup_high},
               {"confirmed", progress.event == Event::kConfirmed},
               {"ceiling_disturbed", progress.ceiling_disturbed},
               {"elapsed_s", progress.elapsed_s},
               {"left_s", progress.left_s}};
  put_fraction(progress.fraction_of_ceiling, &json);
  return dump_json(json);
}

Observer make_display(DisplayKind kind, std::FILE* out, int width) {
  if (kind == DisplayKind::kTerminal) {
    const auto terminal = std::make_shared<Terminal>(Terminal{out, width});
    return [terminal](const Progress& progress) { terminal->show(progress); };
  }
  return [kind, out](const Progress& progress) {
    std::string line = progress_json(progress);
    if (kind == DisplayKind::kLines) {
      line = (progress.evaluations > 0 ? count_text(progress) : "") + event_line(progress);
    }
    std::fputs((line + "\n").c_str(), out);
    std::fflush(out);
  };
}

}  // namespace kernelpro
