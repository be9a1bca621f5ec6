// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu_details.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "profile/import/csv.h"

namespace kernelpro {

namespace {

constexpr std::string_view kSection = "Section: ";
constexpr std::size_t kMostLaunches = 100'000;
constexpr std::size_t kMostUnknown = 200;
constexpr std::size_t kLongestName = 80;  // of a metric

// Whether the text reads as a number, so that "%" and words are no values.
bool is_number(std::string_view text) {
  return read_number(text, DecimalSign::kPoint).has_value() ||
         read_number(text, DecimalSign::kComma).has_value();
}

// "(256, 1, 1)" at the end of `text`, removed from it; "" if there is none.
std::string take_triple(std::string_view* text) {
  *text = trim(*text);
  if (!text->ends_with(")")) return "";
  const std::size_t open = text->rfind('(');
  if (open == std::string_view::npos) return "";
  const std::string_view triple = text->substr(open);
  if (std::count(triple.begin(), triple.end(), ',') != 2 ||
      triple.find_first_not_of("(), 0123456789") != std::string_view::npos) {
    return "";
  }
  text->remove_suffix(triple.size());
  return std::string(triple);
}

// The value after a word of a launch's line: "..., Context 1, Stream 7, Device 0, CC 9.0".
std::string after(std::string_view line, std::string_view word) {
  const std::size_t at = line.rfind(word);
  if (at == std::string_view::npos) return "";
  std::string_view rest = line.substr(at + word.size());
  return std::string(trim(rest.substr(0, rest.find(','))));
}

// "copy(float *, int) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.0"; versions
// before 2022 have the date where these have grid and block.
bool read_launch(std::string_view line, NcuLaunch* launch) {
  const std::size_t context = line.find(", Context ");
  if (context == std::string_view::npos) return false;
  std::string_view head = line.substr(0, context);
  launch->block = take_triple(&head);
  if (!launch->block.empty() && head.ends_with("x")) {
    head.remove_suffix(1);
    launch->grid = take_triple(&head);
  } else if (const std::size_t date = head.rfind("), "); date != std::string_view::npos) {
    head = head.substr(0, date + 1);
  }
  launch->kernel = trim(head);
  launch->device = after(line, "Device ");
  launch->capability = after(line, ", CC ");
  return !launch->kernel.empty();
}

class Reader {
 public:
  void line(std::string_view text) {
    // Quoted text ("> ") and Markdown keep their marks.
    while (!text.empty() && contains("> |\t", text.substr(0, 1))) text.remove_prefix(1);
    text = trim(text);
    if (text.starts_with("==PROF== Connected to process")) return program(text);
    if (text.starts_with("==")) return remark(text);
    NcuLaunch launch;
    if (read_launch(text, &launch)) {
      section_.clear();
      if (details_.table.launches.size() < kMostLaunches) {
        details_.table.launches.push_back(std::move(launch));
      }
      return;
    }
    if (text.starts_with(kSection)) {
      section_ = trim(text.substr(kSection.size()));
      return;
    }
    if (!section_.empty()) row(text);
  }

  NcuDetails finish() {
    details_.table.display_names = true;
    details_.unknown.assign(unknown_.begin(), unknown_.end());
    return std::move(details_);
  }

 private:
  // "==PROF== Connected to process 828 (/tmp/app)".
  void program(std::string_view text) {
    const std::size_t open = text.find(" (");
    if (open == std::string_view::npos || !text.ends_with(")")) return;
    const std::string path(text.substr(open + 2, text.size() - open - 3));
    auto& all = details_.programs;
    if (std::find(all.begin(), all.end(), path) == all.end() && all.size() < 16) {
      all.push_back(path);
    }
  }

  void remark(std::string_view text) {
    for (const std::string_view mark : {"==ERROR==", "==WARNING=="}) {
      if (text.starts_with(mark) && details_.table.said.size() < 20) {
        details_.table.said.emplace_back(printable(trim(text.substr(mark.size())).substr(0, 300)));
      }
    }
  }

  // "L2 Hit Rate      %      43.10": name, unit if there is one, value. A name may end in what
  // looks like a unit ("Waves Per SM"), so known names are tried first.
  void row(std::string_view text) {
    std::string cells = replace_all(std::string(text), "|", " ");  // a Markdown table's
    const std::vector<std::string> parts = words(cells);
    if (parts.size() < 2 || !is_number(parts.back())) return;
    const auto joined = [&](std::size_t count) {
      return join_text({parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count)}, " ");
    };
    std::string name = joined(parts.size() - 1);
    std::string unit;
    std::string_view metric = metric_of_display_name(section_, name);
    if (metric.empty() && parts.size() > 2 && read_unit(parts[parts.size() - 2])) {
      unit = parts[parts.size() - 2];
      name = joined(parts.size() - 2);
      metric = metric_of_display_name(section_, name);
    }
    // Advice in prose may end in a number.
    if (name.size() > kLongestName || (name[0] >= 'a' && name[0] <= 'z')) return;
    if (metric.empty()) {
      if (unknown_.size() < kMostUnknown && parts.size() <= 9) unknown_.insert(printable(name));
      return;
    }
    if (details_.table.launches.empty()) {
      // Pasted without its first lines.
      details_.table.launches.emplace_back().kernel = "the kernel";
    }
    details_.table.launches.back().metrics.try_emplace(std::string(metric),
                                                       NcuLaunch::Value{parts.back(), unit});
  }

  NcuDetails details_;
  std::string section_;
  std::set<std::string> unknown_;
};

}  // namespace

bool is_ncu_details(std::string_view text) {
  const std::size_t section = text.find(kSection);
  return section != std::string_view::npos && contains(text.substr(section), "Metric Value");
}

NcuDetails read_ncu_details(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  Reader reader;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.line(text.substr(0, std::min<std::size_t>(end, 4096)));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return reader.finish();
}

}  // namespace kernelpro
