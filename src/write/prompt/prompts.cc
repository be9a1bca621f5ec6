// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/prompts.h"

#include <algorithm>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "embedded/prompt_attention.h"
#include "embedded/prompt_coder.h"
#include "embedded/prompt_compile.h"
#include "embedded/prompt_convolutions.h"
#include "embedded/prompt_cuda.h"
#include "embedded/prompt_exchange.h"
#include "embedded/prompt_fixer.h"
#include "embedded/prompt_gpu.h"
#include "embedded/prompt_groups.h"
#include "embedded/prompt_hopper.h"
#include "embedded/prompt_library.h"
#include "embedded/prompt_machine.h"
#include "embedded/prompt_planner.h"
#include "embedded/prompt_products.h"
#include "embedded/prompt_rules.h"
#include "embedded/prompt_streams.h"
#include "embedded/prompt_task.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kLargestTemplate = 1 << 20;

// All that any of the templates may name.
constexpr std::string_view kFields[] = {
    "task",     "number", "summary",   "target", "parent",   "parent_file", "definition",
    "standing", "focus",  "diagnosis", "tried",  "language", "entry",       "contract",
    "cases",    "rules",  "extension", "header", "library",  "libraries",   "rounds",
    "ideas",    "idea",   "source",    "failed", "failure",  "broken",      "forms",
    "machine",  "advice", "compile",   "arch",   "units",    "bandwidth",   "fma",
    "tensor",   "floor",  "name",      "memory", "cures"};

std::string without_last_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The next {{field}} of `rest`; false when there is none.
bool next_field(std::string_view rest, std::size_t* open, std::string_view* name) {
  *open = rest.find("{{");
  if (*open == std::string_view::npos) return false;
  const std::size_t close = rest.find("}}", *open);
  if (close == std::string_view::npos) return false;
  *name = rest.substr(*open + 2, close - *open - 2);
  return true;
}

// A field that there is not; "" when all are known.
std::string unknown_field(std::string_view rest) {
  std::size_t open = 0;
  std::string_view name;
  while (next_field(rest, &open, &name)) {
    if (std::find(std::begin(kFields), std::end(kFields), name) == std::end(kFields)) {
      return std::string(name);
    }
    rest.remove_prefix(open + name.size() + 4);
  }
  return "";
}

}  // namespace

Prompts::Prompts()
    : texts_{{"attention", std::string(embedded::prompt_attention)},
             {"coder", std::string(embedded::prompt_coder)},
             {"compile", std::string(embedded::prompt_compile)},
             {"convolutions", std::string(embedded::prompt_convolutions)},
             {"cuda", std::string(embedded::prompt_cuda)},
             {"exchange", std::string(embedded::prompt_exchange)},
             {"fixer", std::string(embedded::prompt_fixer)},
             {"gpu", std::string(embedded::prompt_gpu)},
             {"groups", std::string(embedded::prompt_groups)},
             {"hopper", std::string(embedded::prompt_hopper)},
             {"library", std::string(embedded::prompt_library)},
             {"machine", std::string(embedded::prompt_machine)},
             {"planner", std::string(embedded::prompt_planner)},
             {"products", std::string(embedded::prompt_products)},
             {"rules", std::string(embedded::prompt_rules)},
             {"streams", std::string(embedded::prompt_streams)},
             {"task", std::string(embedded::prompt_task)}} {
  for (const auto& [name, text] : texts_) KP_ASSERT(unknown_field(text).empty());
}

Result<Prompts> Prompts::load(const std::string& directory) {
  Prompts prompts;
  if (directory.empty()) return prompts;
  std::vector<std::string> names;
  for (const auto& [name, text] : prompts.texts_) names.push_back(name + ".md");
  const std::string all = join_text(names, ", ");
  int replaced = 0;
  for (const std::string& file : list_dir(directory)) {
    if (!file.ends_with(".md") || file == "README.md") continue;
    const auto place = prompts.texts_.find(file.substr(0, file.size() - 3));
    const std::string path = join(directory, file);
    if (place == prompts.texts_.end()) {
      return fail(ErrorKind::kBadInput, path + " is no prompt", "name it as one of " + all);
    }
    auto text = read_file(path, kLargestTemplate);
    if (!text) return tl::unexpected<Error>(std::move(text.error()));
    place->second = printable(replace_all(*text, "\r\n", "\n"));
    const std::string field = unknown_field(place->second);
    if (!field.empty()) {
      std::vector<std::string> known(std::begin(kFields), std::end(kFields));
      return fail(ErrorKind::kBadInput, path + " has a field {{" + field + "}} that there is not",
                  "use one of " + join_text(known, ", "));
    }
    ++replaced;
  }
  if (replaced == 0) {
    return fail(ErrorKind::kBadInput, "there is no prompt in " + directory,
                "put one of " + all + " there; docs/models.md says what they are");
  }
  return prompts;
}

std::string Prompts::fill(const std::string& name, const PromptFields& fields) const {
  const auto text = texts_.find(name);
  KP_ASSERT(text != texts_.end());
  std::string out;
  std::string_view rest = text->second;
  std::size_t open = 0;
  std::string_view field;
  while (next_field(rest, &open, &field)) {
    out += rest.substr(0, open);
    const auto value = fields.find(std::string(field));
    const std::string filled = value == fields.end() ? "" : without_last_newline(value->second);
    out += filled;
    rest.remove_prefix(open + field.size() + 4);
    // A line that held nothing but an empty field goes.
    const bool alone = (out.empty() || out.back() == '\n') && rest.starts_with('\n');
    if (filled.empty() && alone) rest.remove_prefix(1);
  }
  return out + std::string(rest);
}

}  // namespace kernelpro
