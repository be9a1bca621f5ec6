// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/prompts.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "core/task/operator_family.h"
#include "embedded/prompt_table.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kLargestTemplate = 1 << 20;

// Every field that a template may use.
constexpr std::string_view kFields[] = {
    "task",       "number",    "summary",        "target",    "parent",       "parent_file",
    "definition", "standing",  "focus",          "diagnosis", "tried",        "language",
    "entry",      "contract",  "cases",          "rules",     "extension",    "header",
    "library",    "libraries", "rounds",         "ideas",     "idea",         "source",
    "failed",     "failure",   "broken",         "forms",     "machine",      "advice",
    "compile",    "arch",      "units",          "bandwidth", "fma",          "sets",
    "caches",     "tensor",    "floor",          "name",      "memory",       "cures",
    "registers",  "threads",   "blocks",         "shared",    "block_shared", "best",
    "scope",      "include",   "header_section", "comment",   "in_doubt"};

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

// The first unknown field; "" when all are known.
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

constexpr std::string_view kFence = "---\n";

// "kind=products|attention" -> its key and values; nullopt: no condition.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};
std::optional<Condition> condition_of(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  Condition condition{std::string(trim(text.substr(0, equals))), {}};
  for (const std::string& value : split(std::string(text.substr(equals + 1)), '|')) {
    condition.values.emplace_back(trim(value));
  }
  return condition;
}

bool is_arch(const std::string& value, const CraftSubject& subject) {
  const auto arch = Architecture::parse(value);
  return arch && subject.arch && arch->major == subject.arch->major &&
         arch->minor == subject.arch->minor;
}

struct ConditionRow {
  std::string_view key;
  bool (*is_known)(const std::string& value);
  bool (*holds)(const std::string& value, const CraftSubject& subject);
};
constexpr ConditionRow kConditions[] = {
    {"target", [](const std::string& value) { return target_from_name(value).has_value(); },
     [](const std::string& value, const CraftSubject& subject) {
       return target_from_name(value) == subject.target;
     }},
    {"arch", [](const std::string& value) { return Architecture::parse(value).has_value(); },
     is_arch},
    {"kind", [](const std::string&) { return true; },
     [](const std::string& value, const CraftSubject& subject) {
       return has_kind(subject.family, value);
     }},
    {"limit", [](const std::string& value) { return value == "memory"; },
     [](const std::string&, const CraftSubject& subject) { return subject.memory_limits; }},
};

const ConditionRow* row_of(const Condition& condition) {
  for (const ConditionRow& row : kConditions) {
    if (row.key == condition.key) return &row;
  }
  return nullptr;
}

bool is_known(const Condition& condition) {
  const ConditionRow* row = row_of(condition);
  return row != nullptr &&
         std::all_of(condition.values.begin(), condition.values.end(), row->is_known);
}

// REQUIRES: is_known.
bool holds(const Condition& condition, const CraftSubject& subject) {
  const ConditionRow* row = row_of(condition);
  return std::any_of(condition.values.begin(), condition.values.end(),
                     [&](const std::string& value) { return row->holds(value, subject); });
}

}  // namespace

// Front matter, where there is any, then the template.
Result<void> Prompts::read_into(const std::string& source, Text* text) {
  text->body = source;
  if (source.starts_with(kFence)) {
    const std::size_t end = source.find(kFence, kFence.size());
    if (end == std::string::npos) {
      return fail(ErrorKind::kBadInput, "its front matter is not closed",
                  "close it with a line ---");
    }
    for (const std::string& line : lines(source.substr(kFence.size(), end - kFence.size()))) {
      const std::size_t colon = line.find(':');
      const std::string key(trim(line.substr(0, colon)));
      const std::string value(colon == std::string::npos ? "" : trim(line.substr(colon + 1)));
      if (key == "order") {
        text->order = std::atoi(value.c_str());
      } else if (key == "when") {
        text->when = value;
      } else {
        return fail(ErrorKind::kBadInput, "its front matter has a line \"" + line + "\"",
                    "write order: NUMBER or when: KEY=VALUE, ...");
      }
    }
    text->body = source.substr(end + kFence.size());
  }
  for (const std::string& each : split(text->when, ',')) {
    if (trim(each).empty()) continue;
    const auto condition = condition_of(each);
    if (!condition || !is_known(*condition)) {
      return fail(ErrorKind::kBadInput, "it has a condition \"" + each + "\" that does not exist",
                  "use target=, arch=sm_..., kind= or limit=memory");
    }
  }
  const std::string field = unknown_field(text->body);
  if (!field.empty()) {
    const std::vector<std::string> known(std::begin(kFields), std::end(kFields));
    return fail(ErrorKind::kBadInput, "it has a field {{" + field + "}} that does not exist",
                "use one of " + join_text(known, ", "));
  }
  return {};
}

Prompts::Prompts() {
  for (const auto& [folder, name, text] : kPromptFiles) {
    Text& own = texts_[std::string(name)];
    own.craft = folder == "craft";
    KP_ASSERT(read_into(std::string(*text), &own));
  }
}

std::vector<std::string> Prompts::craft_for(const CraftSubject& subject) const {
  std::vector<std::pair<int, std::string>> found;
  for (const auto& [name, text] : texts_) {
    if (!text.craft) continue;
    bool all = true;
    for (const std::string& each : split(text.when, ',')) {
      const auto condition = condition_of(each);
      all = all && (!condition || holds(*condition, subject));
    }
    if (all) found.emplace_back(text.order, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [order, name] : found) names.push_back(std::move(name));
  return names;
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
      return fail(ErrorKind::kBadInput, path + " is not a prompt", "name it as one of " + all);
    }
    KP_ASSIGN(auto text, read_file(path, kLargestTemplate));
    if (auto read = read_into(printable(replace_all(text, "\r\n", "\n")), &place->second); !read) {
      Error error = std::move(read.error());
      error.message = path + ": " + error.message;
      return tl::unexpected<Error>(std::move(error));
    }
    ++replaced;
  }
  if (replaced == 0) {
    return fail(ErrorKind::kBadInput, "there is no prompt in " + directory,
                "put one or more of " + all + " there; docs/models.md describes them");
  }
  return prompts;
}

std::string Prompts::fill(const std::string& name, const PromptFields& fields) const {
  const auto text = texts_.find(name);
  KP_ASSERT(text != texts_.end());
  std::string out;
  std::string_view rest = text->second.body;
  std::size_t open = 0;
  std::string_view field;
  while (next_field(rest, &open, &field)) {
    out += rest.substr(0, open);
    const auto value = fields.find(std::string(field));
    const std::string filled = value == fields.end() ? "" : without_last_newline(value->second);
    out += filled;
    rest.remove_prefix(open + field.size() + 4);
    // Drops a line that held only an empty field.
    const bool alone = (out.empty() || out.back() == '\n') && rest.starts_with('\n');
    if (filled.empty() && alone) rest.remove_prefix(1);
  }
  return out + std::string(rest);
}

}  // namespace kernelpro
