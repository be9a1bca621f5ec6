// SPDX-License-Identifier: Apache-2.0
// The languages of candidates: one row each, with everything that the rest of the program asks
// about a language. To add one: a value of the enum, a row in language.cc and, unless it is built
// and run as an existing one is, its code in build/ and measure/. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/task/task.h"

namespace kernelpro {

enum class Language { kCpp, kCuda, kPython };  // in the order of the rows

// How comments, literals and keywords are recognized (write/prompt/code_text.h).
enum class Syntax { kC, kPython };

// A whole word that marks a source as a kernel; counts only if the text `with` is there, too.
struct EntryWord {
  std::string_view word;
  std::string_view with = "";
};

struct LanguageRow {
  Language language;
  std::string_view name;   // in stores, JSON and options: "cuda"
  std::string_view title;  // in prompts and messages: "CUDA C++"
  TargetKind target;       // where it runs

  // The target's own language, one per target: its references are written in it, task folders hold
  // kernels in it, and writers are asked for it.
  bool native = false;
  // Built by the target's compiler (build/compiler.h). Else the file runs as it is, so that it has
  // neither machine code to read nor compile errors.
  bool compiled = false;
  // Runs in a Python process of its own (measure/cuda/python.cc), timed from outside, under the
  // trust "module" (core/evaluation/evaluation.h).
  bool in_python = false;
  // Sources may declare knobs and requirements in comments (core/candidate/knobs.h).
  bool knobs = false;

  // A task's starting kernel and its reference; native languages only (kernel_of).
  std::string Task::*kernel = nullptr;
  std::string Task::*reference = nullptr;
  std::string_view extension;                               // of the files that are written: "cu"
  std::span<const std::string_view> other_extensions = {};  // that are read, too

  // Replies and prompts.
  Syntax syntax;
  std::string_view fence;              // tag of fenced blocks: "cuda"
  std::span<const EntryWord> entries;  // a source has at least one
  std::string_view entry;              // in messages: "`launch`"
  std::string_view signature;          // what a source defines
  // A text of prompts/contract/ on further forms that a source may have; "" = none.
  std::string_view forms = "";

  // Appended to a task's PyTorch module, makes the module itself a candidate; "" = it cannot be
  // one.
  std::string_view of_module = "";
  // The start of a PyTorch task on a target that cannot run the module. It fails.
  std::string_view empty_kernel = "";
  // What to do instead of exporting a candidate as standalone files (report/export/); "" = those
  // can be written.
  std::string_view instead_of_export = "";
};

std::span<const LanguageRow> languages();
const LanguageRow& language_row(Language language);
const LanguageRow& native_language(TargetKind target);
// By the end of its name; null: no language's.
const LanguageRow* language_of_file(std::string_view file);

std::string_view language_name(Language language);  // "cpp", "cuda", "python"
std::optional<Language> language_from_name(std::string_view name);
std::string language_names();  // "cpp|cuda|python"

// The name of a starting kernel in a task's folder: "kernel.cu".
std::string kernel_file_name(const LanguageRow& row);
// A task's starting kernel in a language; "" = none.
const std::string& kernel_of(const Task& task, const LanguageRow& row);
void set_kernel(const LanguageRow& row, std::string source, Task* task);
// The same in the target's own language.
const std::string& native_kernel(const Task& task, TargetKind target);

// For messages: ".cu (CUDA C++ with `launch`), ... or ...".
std::string language_files();
// For help: "cuda: CUDA C++ with `launch`, cuda target; ...".
std::string language_help();

}  // namespace kernelpro
