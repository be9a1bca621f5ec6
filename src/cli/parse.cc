// SPDX-License-Identifier: Apache-2.0
#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>

#include "base/text.h"

namespace kernelpro {

namespace {

// The row that takes all words after a lone "--": a program and its arguments.
bool is_rest(const OptionSpec& spec) { return spec.name == "--"; }
bool is_positional(const OptionSpec& spec) { return spec.name.rfind("-", 0) != 0; }
bool is_flag(const OptionSpec& spec) { return !is_positional(spec) && spec.value.empty(); }
bool repeats(const OptionSpec& spec) {
  return spec.value.size() > 3 && spec.value.substr(spec.value.size() - 3) == "...";
}

struct Slot {
  const OptionSpec* spec = nullptr;
  bool flag = false;
  std::string text;  // value of an option that may be given once
  CLI::Option* option = nullptr;
  std::vector<std::string> texts;  // values of a repeatable option
};

void add(CLI::App* app, Slot* slot) {
  const OptionSpec& spec = *slot->spec;
  const std::string name(spec.name);
  if (is_flag(spec)) {
    slot->option = app->add_flag(name, slot->flag);
  } else if (repeats(spec)) {
    slot->option = app->add_option(name, slot->texts);
    // One value per occurrence, so that the option does not swallow positionals.
    if (!is_positional(spec)) slot->option->allow_extra_args(false);
  } else {
    slot->option = app->add_option(name, slot->text);
  }
  if (spec.required) slot->option->required();
}

std::string choices_of(const OptionSpec& spec) {
  return spec.choices_from != nullptr ? spec.choices_from() : std::string(spec.choices);
}

Result<void> check(const Slot& slot) {
  const OptionSpec& spec = *slot.spec;
  const std::string choices = choices_of(spec);
  if (choices.empty() || slot.texts.empty()) return {};
  for (const std::string& choice : split(choices, '|')) {
    if (slot.texts.front() == choice) return {};
  }
  return fail(ErrorKind::kBadInput,
              std::string(spec.name) + " cannot be \"" + slot.texts.front() + "\"",
              "choose one of " + replace_all(choices, "|", ", "));
}

}  // namespace

Result<Options> parse_options(const Subcommand& subcommand,
                              const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  std::vector<std::unique_ptr<Slot>> slots;
  bool takes_rest = false;
  for (const OptionSpec& spec : subcommand.options) {
    takes_rest |= is_rest(spec);
    if (is_rest(spec)) continue;
    slots.push_back(std::make_unique<Slot>());
    slots.back()->spec = &spec;
    add(&app, slots.back().get());
  }
  const auto dashes =
      takes_rest ? std::find(arguments.begin(), arguments.end(), "--") : arguments.end();
  std::vector<std::string> reversed(std::make_reverse_iterator(dashes), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return fail(ErrorKind::kBadInput, std::string(subcommand.name) + ": " + error.what(),
                "usage: " + usage_line(subcommand));
  }
  Options options;
  if (dashes != arguments.end()) options.rest.assign(dashes + 1, arguments.end());
  for (const auto& slot : slots) {
    if (slot->option->count() > 0 && slot->texts.empty() && !slot->flag) {
      slot->texts = {slot->text};
    }
    KP_TRY(check(*slot));
    const std::string name(slot->spec->name);
    if (slot->flag) options.values[name] = "1";
    if (!slot->texts.empty()) {
      options.values[name] = join_text(slot->texts, "\n");
    } else if (!slot->spec->initial.empty()) {
      options.values[name] = std::string(slot->spec->initial);
    }
  }
  return options;
}

std::string usage_line(const Subcommand& subcommand) {
  std::string text = "kernelpro " + std::string(subcommand.name);
  bool has_options = false;
  std::string rest;
  for (const OptionSpec& spec : subcommand.options) {
    if (is_rest(spec)) {
      rest = " [-- " + std::string(spec.value) + "]";
    } else if (!is_positional(spec)) {
      has_options = true;
    } else {
      const std::string name = std::string(spec.name) + (repeats(spec) ? "..." : "");
      text += spec.required ? " " + name : " [" + name + "]";
    }
  }
  return text + (has_options ? " [options]" : "") + rest;
}

namespace {

std::string left_column(const OptionSpec& spec) {
  std::string text(spec.name);
  if (is_positional(spec)) return text + (repeats(spec) ? "..." : "");
  if (!spec.value.empty()) text += " " + std::string(spec.value);
  return text;
}

std::string note(const OptionSpec& spec) {
  std::string text(spec.help);
  if (spec.help_from != nullptr) text += " " + spec.help_from() + ".";
  const std::string choices = choices_of(spec);
  if (!choices.empty()) text += " One of " + replace_all(choices, "|", ", ") + ".";
  if (!spec.initial.empty()) text += " Default: " + std::string(spec.initial) + ".";
  return text;
}

std::string pad(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace

std::string help_text() {
  std::string text =
      "KernelPro makes GPU and CPU kernels fast: it measures, diagnoses, rewrites, verifies, and "
      "measures again.\n\nusage: kernelpro COMMAND ...\n\n";
  for (const Subcommand* subcommand : subcommands()) {
    text += "  " + pad(std::string(subcommand->name) + " ", 14) + std::string(subcommand->summary) +
            "\n";
  }
  return text +
         "\nkernelpro help COMMAND lists a command's options; kernelpro --version prints the "
         "version.\nTo try it: kernelpro optimize examples/softmax\n";
}

std::string help_text(const Subcommand& subcommand) {
  std::string text =
      std::string(subcommand.summary) + "\n\nusage: " + usage_line(subcommand) + "\n";
  if (!subcommand.options.empty()) text += "\n";
  for (const OptionSpec& spec : subcommand.options) {
    text += "  " + pad(left_column(spec), 24) + " " + note(spec) + "\n";
  }
  return text;
}

std::string help_markdown() {
  std::string text =
      "# Commands\n\nPrinted by `kernelpro help --markdown`; a test compares this page with "
      "it.\n\nExit codes: 0 done; 1 an evaluated, exported or compared kernel is not good enough, "
      "or "
      "a suite has unfinished tasks; 2 wrong input or usage; 3 this machine lacks something; 4 "
      "another process "
      "holds the run; 5 the run folder cannot be used; 6 the task is refused; 7 the run achieved "
      "nothing; 70 internal error; 130 and 143 interrupted (SIGINT, SIGTERM). [What each "
      "means](run-store.md#exit-statuses).\n";
  for (const Subcommand* subcommand : subcommands()) {
    text += "\n## kernelpro " + std::string(subcommand->name) + "\n\n" +
            std::string(subcommand->summary) + "\n\n    " + usage_line(*subcommand) + "\n";
    if (subcommand->options.empty()) continue;
    text += "\n| option | meaning |\n|---|---|\n";
    for (const OptionSpec& spec : subcommand->options) {
      text += "| `" + left_column(spec) + "` | " + replace_all(note(spec), "|", "\\|") + " |\n";
    }
  }
  return text;
}

const Subcommand* find_subcommand(std::string_view name) {
  for (const Subcommand* subcommand : subcommands()) {
    if (subcommand->name == name) return subcommand;
  }
  return nullptr;
}

}  // namespace kernelpro
