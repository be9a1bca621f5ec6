// SPDX-License-Identifier: Apache-2.0
// Parses the text of nvdisasm and cuobjdump line by line: functions, labels, instructions, their
// control bits (`-hex`) and source lines (`-gi`).
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "profile/sass/opcodes.h"
#include "profile/sass/program.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxInstructions = 400'000;  // of a whole file
constexpr std::size_t kMaxFiles = 200;             // with line information, per function
constexpr std::size_t kMaxChains = 20'000;         // of inlined calls, per function
constexpr std::size_t kMaxCalls = 3;               // of a chain

// "/*00b0*/  @P0 LDG.E.128 R4, desc[UR4][R2.64] ;  /* 0x... */"
bool parse_instruction(std::string_view line, SassInstruction* instruction) {
  if (!line.starts_with("/*")) return false;
  const std::size_t close = line.find("*/");
  if (close == std::string_view::npos) return false;
  if (!parse_hex(line.substr(2, close - 2), &instruction->address)) return false;
  std::string_view rest = line.substr(close + 2);
  const std::size_t comment = rest.find("/*");
  if (comment != std::string_view::npos) rest = rest.substr(0, comment);
  rest = trim(rest);
  if (!rest.empty() && rest.back() == ';') rest = trim(rest.substr(0, rest.size() - 1));
  if (rest.starts_with("{")) rest = trim(rest.substr(1));  // dual issue of old GPUs
  if (rest.starts_with("@")) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    instruction->guard = rest.substr(0, end);
    rest = trim(rest.substr(end));
  }
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  std::string_view name = rest.substr(0, end);
  const std::size_t dot = std::min(name.find('.'), name.size());
  if (dot == 0 || name[0] < 'A' || name[0] > 'Z') return false;
  instruction->root = name.substr(0, dot);
  if (dot < name.size()) instruction->modifiers = split(name.substr(dot + 1), '.');
  instruction->operands = trim(rest.substr(end));
  // Instructions with an always-false guard are fillers, like NOP.
  if (instruction->guard == "@!PT" || instruction->guard == "@!UPT") instruction->root = "NOP";
  instruction->op = op_of(instruction->root);
  return true;
}

// "/* 0x000fe20000000800 */": the upper half of an instruction's 128 bits.
bool parse_upper_half(std::string_view line, unsigned long long* bits) {
  constexpr std::string_view kStart = "/* 0x";
  if (!line.starts_with(kStart) || !line.ends_with("*/")) return false;
  return parse_hex(trim(line.substr(kStart.size(), line.size() - kStart.size() - 2)), bits);
}

SassControl control_of(unsigned long long bits) {
  SassControl control;
  control.known = true;
  control.stall = static_cast<std::uint8_t>((bits >> 41) & 0xf);
  control.written_by = static_cast<std::uint8_t>((bits >> 46) & 7);
  control.read_by = static_cast<std::uint8_t>((bits >> 49) & 7);
  control.waits = static_cast<std::uint8_t>((bits >> 52) & 0x3f);
  return control;
}

// The name of a function that starts on this line, in either tool's text, or "".
std::string_view function_name(std::string_view line) {
  constexpr std::string_view kCuobjdump = "Function : ";
  constexpr std::string_view kNvdisasm = ".text.";
  if (line.starts_with(kCuobjdump)) return trim(line.substr(kCuobjdump.size()));
  if (line.starts_with(kNvdisasm) && line.back() == ':') {
    return line.substr(kNvdisasm.size(), line.size() - kNvdisasm.size() - 1);
  }
  return {};
}

std::string arch_of(std::string_view line) {
  const std::size_t at = line.find("sm_");
  if (at == std::string_view::npos) return "";
  std::size_t end = at + 3;
  while (end < line.size() && (std::isdigit(static_cast<unsigned char>(line[end])) != 0 ||
                               (line[end] >= 'a' && line[end] <= 'z'))) {
    ++end;
  }
  return std::string(line.substr(at, end - at));
}

struct Place {
  std::string_view file;
  int line = 0;
};

// The text after `key` up to the closing quote, and the number after ", line ".
bool parse_place(std::string_view text, std::string_view key, Place* place) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return false;
  text.remove_prefix(at + key.size());
  const std::size_t quote = text.find('"');
  constexpr std::string_view kLine = "\", line ";
  if (quote == std::string_view::npos || !text.substr(quote).starts_with(kLine)) return false;
  place->file = text.substr(0, quote);
  text.remove_prefix(quote + kLine.size());
  return std::from_chars(text.data(), text.data() + text.size(), place->line).ec == std::errc() &&
         place->line > 0;
}

// Headers of the toolkit and the host compiler, not written by the kernel's author.
bool foreign(std::string_view file) {
  return contains(file, "/include/") || contains(file, "/cccl/") || contains(file, "/cutlass/");
}

class Parser {
 public:
  std::vector<SassFunction> parse(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size() && total_ < kMaxInstructions;) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = trim(text.substr(begin, end - begin));
      begin = end + 1;
      if (!line.empty()) parse_line(line);
    }
    for (SassFunction& function : functions_) {
      function.entry = entries_.empty() || entries_.count(function.name) > 0;
    }
    return std::move(functions_);
  }

 private:
  void parse_line(std::string_view line) {
    if (line.starts_with("/*")) {
      if (inside_) add_code(line);
      return;
    }
    if (line.starts_with("//## File")) {
      if (inside_) add_place(line);
      return;
    }
    const std::string_view name = function_name(line);
    if (!name.empty()) {
      functions_.emplace_back();
      functions_.back().name = name;
      functions_.back().arch = arch_;
      inside_ = true;
      fresh_ = true;
      chosen_ = {};
      calls_.clear();
      chains_.clear();
    } else if (line.starts_with(".target") || line.starts_with("code for sm_")) {
      arch_ = arch_of(line);
    } else if (line.starts_with(".other") && contains(line, "STO_CUDA_ENTRY")) {
      const std::string_view rest = trim(line.substr(6));
      entries_[std::string(trim(rest.substr(0, rest.find(','))))] = true;
    } else if (line.starts_with(".section") || line.starts_with("//------")) {
      inside_ = false;
    } else if (inside_ && line.back() == ':' && !contains(line, " ")) {
      SassFunction& f = functions_.back();
      f.labels[std::string(line.substr(0, line.size() - 1))] = static_cast<int>(f.code.size());
    }
  }

  void add_code(std::string_view line) {
    std::vector<SassInstruction>& code = functions_.back().code;
    unsigned long long bits = 0;
    if (parse_upper_half(line, &bits)) {
      if (!code.empty() && !code.back().control.known) code.back().control = control_of(bits);
      return;
    }
    SassInstruction instruction;
    if (!parse_instruction(line, &instruction)) return;
    if (chosen_.line > 0 && file() >= 0) {
      instruction.file = file();
      instruction.line = chosen_.line;
      instruction.calls = chain();
    }
    fresh_ = true;
    code.push_back(std::move(instruction));
    ++total_;
  }

  // Of a chain of inlined calls, keeps the innermost place outside libraries, and the calls around
  // it. The chain is listed innermost first, one line each:
  // `//## File "a.h", line 3 inlined at "k.cu", line 41`.
  void add_place(std::string_view line) {
    if (fresh_) {
      chosen_ = {};
      settled_ = false;
      calls_.clear();
    }
    fresh_ = false;
    for (const std::string_view key :
         {std::string_view("File \""), std::string_view("inlined at \"")}) {
      Place place;
      if (!parse_place(line, key, &place)) continue;
      if (!settled_) {
        chosen_ = place;
        settled_ = !foreign(place.file);
        file_ = kUnresolved;
      } else if (!foreign(place.file)) {
        add_call(place);
      }
    }
  }

  // The index of the chosen place's file.
  int file() {
    if (file_ == kUnresolved) file_ = file_index(chosen_.file);
    return file_;
  }

  // A call is named twice: where the inlined function's place is, and by a line of its own.
  void add_call(const Place& place) {
    const std::pair<int, int> call{file_index(place.file), place.line};
    if (call.first < 0 || calls_.size() == kMaxCalls) return;
    if (call == std::pair{file(), chosen_.line}) return;
    if (std::find(calls_.begin(), calls_.end(), call) == calls_.end()) calls_.push_back(call);
  }

  // -1: there are too many.
  int file_index(std::string_view path) {
    SassFunction& f = functions_.back();
    const std::size_t slash = path.rfind('/');
    const std::string name(path.substr(slash == std::string_view::npos ? 0 : slash + 1));
    const auto found = std::find(f.files.begin(), f.files.end(), name);
    if (found != f.files.end()) return static_cast<int>(found - f.files.begin());
    if (f.files.size() == kMaxFiles) return -1;
    f.files.push_back(name);
    f.folders.emplace_back(slash == std::string_view::npos ? "" : path.substr(0, slash));
    return static_cast<int>(f.files.size()) - 1;
  }

  int chain() {
    if (calls_.empty()) return -1;
    SassFunction& f = functions_.back();
    const auto [known, added] = chains_.emplace(calls_, static_cast<int>(f.calls.size()));
    if (!added) return known->second;
    if (f.calls.size() == kMaxChains) {
      chains_.erase(known);
      return -1;
    }
    f.calls.push_back(calls_);
    return known->second;
  }

  std::vector<SassFunction> functions_;
  std::map<std::string, bool, std::less<>> entries_;
  std::string arch_;
  bool inside_ = false;
  std::size_t total_ = 0;
  // The place of the instructions that follow.
  Place chosen_;
  static constexpr int kUnresolved = -2;
  int file_ = kUnresolved;
  bool fresh_ = true;                       // the next place starts a new chain
  bool settled_ = false;                    // a place in the author's own code was found
  std::vector<std::pair<int, int>> calls_;  // around that place
  std::map<std::vector<std::pair<int, int>>, int> chains_;  // of this function, by index
};

}  // namespace

std::vector<SassFunction> parse_sass(std::string_view text) { return Parser().parse(text); }

}  // namespace kernelpro
