// SPDX-License-Identifier: Apache-2.0
#include "build/diagnostics_lines.h"

#include <cctype>

#include "base/text.h"
#include "core/plan/kernel_name.h"

namespace kernelpro {

namespace {

// "error:", "error   :", "error #20:", "fatal error:"; not "no_error:" or "errors".
bool names(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos;
       at = line.find(word, at + 1)) {
    if (at > 0 &&
        (std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0 || line[at - 1] == '_'))
      continue;
    std::size_t end = at + word.size();
    while (end < line.size() && line[end] == ' ') ++end;
    if (end < line.size() && (line[end] == ':' || line[end] == '#')) return true;
  }
  return false;
}

std::string demangle_names(const std::string& line) {
  std::string result;
  for (std::size_t i = 0; i < line.size();) {
    const bool starts = line.compare(i, 2, "_Z") == 0 &&
                        (i == 0 || (std::isalnum(static_cast<unsigned char>(line[i - 1])) == 0 &&
                                    line[i - 1] != '_'));
    if (!starts) {
      result += line[i++];
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 ||
                                 line[end] == '_' || line[end] == '$' || line[end] == '.')) {
      ++end;
    }
    result += demangled(line.substr(i, end - i));
    i = end;
  }
  return result;
}

// "/usr/bin/ld: ./kernel.o: x.cpp:(.text+0x10): undefined reference to `f'" -> "undefined ...";
// "kernel.cpp:3: undefined reference" keeps its location.
std::string linker_line(const std::string& line) {
  const std::size_t at = line.find("undefined reference to");
  if (at == std::string::npos) return line;
  std::string place = line.substr(0, at);
  while (!place.empty() && (place.back() == ' ' || place.back() == ':')) place.pop_back();
  const std::size_t colon = place.rfind(':');
  const std::string file = place.substr(0, colon == std::string::npos ? 0 : colon);
  const bool numbered = colon != std::string::npos && colon + 1 < place.size() &&
                        std::isdigit(static_cast<unsigned char>(place[colon + 1])) != 0;
  const std::size_t space = file.rfind(' ');
  const std::string shown = space == std::string::npos ? file : file.substr(space + 1);
  return (numbered ? shown + place.substr(colon) + ": error: " : "error: ") + line.substr(at);
}

}  // namespace

LineKind line_kind(std::string_view line) {
  for (const std::string_view noise :
       {"detected in the compilation of", "compilation terminated", "ld returned 1 exit status",
        "Ptx assembly aborted due to errors", "Remark: The warnings can be suppressed",
        "linker command failed", "-fmax-errors=", "too many errors emitted", "errors generated.",
        "error generated.", "Error limit reached", "Compilation terminated"}) {
    if (contains(line, noise)) return LineKind::kNoise;
  }
  if (contains(line, "in function `")) return LineKind::kNoise;  // from the linker; object names
  for (const std::string_view trace :
       {"instantiation of ", "instantiation contexts not shown",
        "detected during:", "implicit generation of", "required from", "required by substitution",
        "In instantiation of", "in instantiation of", "recursively required",
        "skipping 1 instantiation context", "instantiation contexts,", "In substitution of",
        "in 'constexpr' expansion of"}) {
    if (contains(line, trace) && !names(line, "error")) return LineKind::kBacktrace;
  }
  if (names(line, "error") || contains(line, "undefined reference") ||
      contains(line, "required symbol") || contains(line, "undefined symbol") ||
      contains(line, "ptxas fatal")) {
    return LineKind::kError;
  }
  if (names(line, "warning")) return LineKind::kWarning;
  if (names(line, "note") || names(line, "remark")) return LineKind::kNote;
  if (line.starts_with("In file included from") || line.starts_with("                 from ") ||
      contains(line, ": In ") || contains(line, ": At global scope:")) {
    return LineKind::kLeadIn;
  }
  return LineKind::kOther;
}

bool in_system_header(std::string_view line) {
  return line.starts_with("/") && !line.starts_with("/usr/bin/ld");
}

std::string readable_line(const std::string& line) {
  std::string result = linker_line(line);
  if (contains(result, "ptxas") || contains(result, "nvlink")) {
    result = replace_all(result, "error   :", "error:");
    result = replace_all(result, "fatal   :", "error:");
    result = demangle_names(result);
  }
  return result;
}

void restore_source_line(std::string* source, std::string* caret) {
  struct Spelling {
    std::string_view shown, written;
  };
  constexpr Spelling kSpellings[] = {
      {"__attribute__((global))", "__global__"},
      {"__attribute__((device))", "__device__"},
      {"__attribute__((host))", "__host__"},
      {"__attribute__((shared))", "__shared__"},
      {"__attribute__((constant))", "__constant__"},
      {"__attribute__((grid_constant))", "__grid_constant__"},
      {"__inline__ __attribute__((always_inline))", "__forceinline__"},
      {"__attribute__((noinline))", "__noinline__"}};
  const std::size_t mark = caret->find('^');
  const bool has_caret =
      mark != std::string::npos && caret->find_first_not_of(" ^~") == std::string::npos;
  std::size_t shift = 0;
  for (const Spelling& s : kSpellings) {
    for (std::size_t at = source->find(s.shown); at != std::string::npos;
         at = source->find(s.shown, at)) {
      source->replace(at, s.shown.size(), s.written);
      if (has_caret && at + shift < mark) shift += s.shown.size() - s.written.size();
    }
  }
  if (has_caret && shift <= mark) caret->erase(0, shift);
}

}  // namespace kernelpro
