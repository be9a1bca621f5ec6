// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu_source.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "profile/import/csv.h"

namespace kernelpro {

namespace {

// Larger addresses are those of loaded code.
constexpr std::uint64_t kLargestOffset = 1u << 26;
constexpr std::size_t kInstructionBytes = 16;  // since Volta
constexpr std::string_view kExposed = "_not_issued";

// The page's abbreviations; a few versions spell reasons out.
constexpr std::pair<std::string_view, Stall> kShort[] = {
    {"imc", Stall::kImcMiss},
    {"lg", Stall::kLgThrottle},
    {"long_sb", Stall::kLongScoreboard},
    {"math", Stall::kMathPipeThrottle},
    {"mio", Stall::kMioThrottle},
    {"no_inst", Stall::kNoInstruction},
    {"short_sb", Stall::kShortScoreboard},
    {"sleep", Stall::kSleeping},
    {"tex", Stall::kTexThrottle},
    {"branch_resolve", Stall::kBranchResolving},
};

struct Column {
  std::size_t at = 0;
  Stall stall = Stall::kMisc;
  bool exposed = false;
};

// "stall_long_sb", "stall_long_sb (Not Issued)",
// "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued".
std::optional<Column> stall_column(std::string_view name) {
  Column column;
  constexpr std::string_view kMark = " (Not Issued)";
  if (name.ends_with(kMark)) {
    column.exposed = true;
    name.remove_suffix(kMark.size());
  }
  if (name.ends_with(kExposed)) {
    column.exposed = true;
    name.remove_suffix(kExposed.size());
  }
  if (name.starts_with("stall_")) {
    name.remove_prefix(6);
    for (const auto& [theirs, ours] : kShort) {
      if (name == theirs) name = stall_row(ours).name;
    }
  } else if (!contains(name, "pcsamp_warps_issue_stalled_")) {
    return std::nullopt;
  }
  const auto stall = stall_from_name(name);
  if (!stall) return std::nullopt;
  column.stall = *stall;
  return column;
}

struct Header {
  int address = -1, number = -1, source = -1, function = -1;
  int all = -1, exposed = -1;  // of all reasons
  std::vector<Column> stalls;
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<Header> read_header(const std::vector<std::string>& fields) {
  Header h;
  std::map<std::pair<Stall, bool>, bool> seen;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string_view name = trim(fields[i]);
    const int at = static_cast<int>(i);
    if (h.address < 0 && is_one_of(name, {"Address", "PC"})) h.address = at;
    if (h.number < 0 && name == "#") h.number = at;
    // Beside the source's own text, that of the machine code comes after the address.
    if (name == "SASS" || (name == "Source" && (h.source < 0 || h.address == at - 1)))
      h.source = at;
    if (h.function < 0 && is_one_of(name, {"Function Name", "Kernel Name"})) h.function = at;
    if (h.all < 0 && is_one_of(name, {"# Samples", "Samples", "Warp Stall Sampling (All Samples)",
                                      "Warp Stall Sampling (All Cycles)"})) {
      h.all = at;
    }
    if (h.exposed < 0 && is_one_of(name, {"Warp Stall Sampling (Not-issued Samples)",
                                          "Warp Stall Sampling (Not Issued Samples)",
                                          "Warp Stall Sampling (Not-issued Cycles)"})) {
      h.exposed = at;
    }
    auto column = stall_column(name);
    if (!column || !seen.emplace(std::pair(column->stall, column->exposed), true).second) continue;
    column->at = i;
    h.stalls.push_back(*column);
  }
  if (h.source < 0 || (h.address < 0 && h.number < 0)) return std::nullopt;
  return h;
}

std::string_view field(const std::vector<std::string>& fields, int column) {
  if (column < 0 || static_cast<std::size_t>(column) >= fields.size()) return {};
  return trim(fields[static_cast<std::size_t>(column)]);
}

// "0x7fc48541d900", "/*0060*/", "70".
std::optional<std::uint64_t> read_address(std::string_view text) {
  if (text.starts_with("/*")) text.remove_prefix(2);
  if (text.ends_with("*/")) text.remove_suffix(2);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string hex(std::uint64_t value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%llx", static_cast<unsigned long long>(value));
  return digits;
}

using Stalls = std::map<Stall, StallSamples>;

struct Kernel {
  std::map<int, Stalls> pcs;
  std::string sass;
  bool whole = false;  // its code has been read, with an earlier launch
};

class Reader {
 public:
  void take(const std::vector<std::string>& fields) {
    const std::string_view first = field(fields, 0);
    // A kernel's rows follow its name: "Kernel Name","copy(float *)".
    if ((first == "Kernel Name" || first == "Function Name") && !read_header(fields)) {
      begin(std::string(field(fields, 1)));
      return;
    }
    if (auto header = read_header(fields)) {
      header_ = std::move(header);
      base_.reset();
      row_ = 0;
      return;
    }
    if (header_) row(fields);
  }

  NcuSourcePage finish() {
    NcuSourcePage page;
    page.samples.source = "ncu";
    for (auto& [name, kernel] : kernels_) {
      if (!kernel.sass.empty()) page.sass += "\t\tFunction : " + name + "\n" + kernel.sass;
      KernelSamples samples;
      samples.function = name;
      for (const auto& [offset, stalls] : kernel.pcs) {
        PcSamples& pc = samples.pcs.emplace_back();
        pc.offset = offset;
        for (const auto& [key, stall] : stalls) {
          pc.stalls.push_back({key, std::max(stall.all, stall.exposed), stall.exposed});
        }
      }
      if (!samples.pcs.empty()) page.samples.kernels.push_back(std::move(samples));
    }
    if (page.samples.kernels.empty()) {
      page.samples.missing.push_back(
          {Family::kSamples, "the report's source page has no samples",
           "profile with `ncu --set full`, or --section SourceCounters"});
      page.samples.source.clear();
    }
    if (without_reasons_) {
      page.notes.push_back(
          "The report has samples without the reasons of the stalls; `ncu --set full` has them.");
    }
    if (elsewhere_ > 0) {
      page.notes.push_back(std::to_string(elsewhere_) +
                           " instructions of functions that the kernels call were left out.");
    }
    return page;
  }

 private:
  void begin(const std::string& name) {
    kernel_ = name;
    header_.reset();
    if (const auto known = kernels_.find(name); known != kernels_.end()) known->second.whole = true;
  }

  // The instruction's place in its function.
  std::optional<int> offset_of(const std::vector<std::string>& fields) {
    const std::size_t row = row_++;
    if (header_->address < 0) {
      const auto number = read_number(field(fields, header_->number), DecimalSign::kPoint);
      if (!number || row > kLargestOffset / kInstructionBytes) return std::nullopt;
      return static_cast<int>(row * kInstructionBytes);
    }
    const auto address = read_address(field(fields, header_->address));
    if (!address) return std::nullopt;
    if (!base_) base_ = *address > kLargestOffset ? *address : 0;
    if (*address < *base_ || *address - *base_ > kLargestOffset) {
      ++elsewhere_;
      return std::nullopt;
    }
    return static_cast<int>(*address - *base_);
  }

  void row(const std::vector<std::string>& fields) {
    if (const std::string_view named = field(fields, header_->function);
        !named.empty() && named != kernel_) {
      kernel_ = named;
      base_.reset();
    }
    const auto offset = offset_of(fields);
    if (!offset) return;
    Kernel& kernel = kernels_[kernel_];
    const std::string_view source = field(fields, header_->source);
    if (!kernel.whole && !source.empty()) {
      kernel.sass += "        /*" + hex(static_cast<std::uint64_t>(*offset)) + "*/  " +
                     relative(printable(source)) + " ;\n";
    }
    Stalls stalls;
    bool reasons = false;
    for (const Column& column : header_->stalls) {
      const double count = count_of(fields, static_cast<int>(column.at));
      if (count <= 0) continue;
      reasons = true;
      add(column.stall, column.exposed, count, &stalls);
    }
    const double all = count_of(fields, header_->all);
    const double exposed = count_of(fields, header_->exposed);
    if (!reasons && all + exposed > 0) {
      without_reasons_ = without_reasons_ || header_->stalls.empty();
      add(Stall::kMisc, false, std::max(all, exposed), &stalls);
      if (exposed > 0) add(Stall::kMisc, true, exposed, &stalls);
    }
    for (const auto& [key, stall] : stalls) {
      StallSamples& sum = kernel.pcs[*offset][key];
      sum.stall = key;
      sum.all += stall.all;
      sum.exposed += stall.exposed;
    }
  }

  static void add(Stall stall, bool exposed, double count, Stalls* stalls) {
    StallSamples& at = (*stalls)[stall];
    (exposed ? at.exposed : at.all) += count;
  }

  // 0 for "-" and absent columns. Counts have no decimals, so both separators mark thousands.
  static double count_of(const std::vector<std::string>& fields, int column) {
    const auto number =
        read_number(replace_all(std::string(field(fields, column)), ",", ""), DecimalSign::kPoint);
    return number && *number > 0 && *number < 1e15 ? *number : 0;
  }

  // Jumps name loaded addresses: "BRA 0x7fc48541db10" -> "BRA 0x210".
  std::string relative(std::string text) const {
    if (!base_ || *base_ == 0) return text;
    const std::size_t at = text.rfind("0x");
    if (at == std::string::npos) return text;
    std::size_t end = at + 2;
    while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    const auto address = read_address(std::string_view(text).substr(at, end - at));
    if (!address || *address < *base_ || *address - *base_ > kLargestOffset) return text;
    return text.substr(0, at) + "0x" + hex(*address - *base_) + text.substr(end);
  }

  std::map<std::string, Kernel> kernels_;
  std::string kernel_;
  std::optional<Header> header_;
  std::optional<std::uint64_t> base_;  // the address of the function's first instruction
  std::size_t row_ = 0;
  std::size_t elsewhere_ = 0;
  bool without_reasons_ = false;
};

std::string_view raw_line(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace

bool is_ncu_source_page(std::string_view text) {
  std::vector<std::string> fields;
  text = text.substr(0, 1 << 20);
  while (!text.empty()) {
    if (!contains(raw_line(text), ",")) {
      text.remove_prefix(std::min(text.size(), raw_line(text).size() + 1));
      continue;
    }
    next_record(&text, &fields);
    const auto header = read_header(fields);
    if (header && (header->all >= 0 || !header->stalls.empty())) return true;
  }
  return false;
}

NcuSourcePage read_ncu_source_page(std::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  Reader reader;
  std::vector<std::string> fields;
  while (!text.empty()) {
    const std::string_view line = raw_line(text);
    if (line.substr(0, 2) == "==" || !contains(line, ",")) {
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      continue;
    }
    next_record(&text, &fields);
    reader.take(fields);
  }
  return reader.finish();
}

}  // namespace kernelpro
