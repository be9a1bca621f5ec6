// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/requirements.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>

#include "base/text.h"

namespace kernelpro {

namespace {

using Value = std::optional<std::int64_t>;

// Unsigned arithmetic wraps around; signed overflow would be undefined.
template <class Compute>
std::int64_t wrapped(std::int64_t a, std::int64_t b, Compute compute) {
  return static_cast<std::int64_t>(
      compute(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

bool divides(std::int64_t a, std::int64_t b) {
  return b != 0 && (b != -1 || a != std::numeric_limits<std::int64_t>::min());
}

// Binary operators by precedence, lowest first.
struct Operator {
  std::string_view text;
  int level;
  Value (*apply)(std::int64_t, std::int64_t);
};
constexpr int kLevels = 6;
constexpr Operator kOperators[] = {
    {"||", 0, [](auto a, auto b) -> Value { return a != 0 || b != 0; }},
    {"&&", 1, [](auto a, auto b) -> Value { return a != 0 && b != 0; }},
    {"==", 2, [](auto a, auto b) -> Value { return a == b; }},
    {"!=", 2, [](auto a, auto b) -> Value { return a != b; }},
    {"<=", 3, [](auto a, auto b) -> Value { return a <= b; }},
    {">=", 3, [](auto a, auto b) -> Value { return a >= b; }},
    {"<", 3, [](auto a, auto b) -> Value { return a < b; }},
    {">", 3, [](auto a, auto b) -> Value { return a > b; }},
    {"+", 4, [](auto a, auto b) -> Value { return wrapped(a, b, std::plus<>()); }},
    {"-", 4, [](auto a, auto b) -> Value { return wrapped(a, b, std::minus<>()); }},
    {"*", 5, [](auto a, auto b) -> Value { return wrapped(a, b, std::multiplies<>()); }},
    {"/", 5, [](auto a, auto b) -> Value { return divides(a, b) ? Value(a / b) : std::nullopt; }},
    {"%", 5, [](auto a, auto b) -> Value { return divides(a, b) ? Value(a % b) : std::nullopt; }},
};
Value negated(std::int64_t a, std::int64_t) { return a == 0; }
Value opposite(std::int64_t a, std::int64_t) { return wrapped(0, a, std::minus<>()); }

constexpr std::size_t kMostSteps = 1000;
constexpr int kMostNesting = 100;

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // An unsigned or long suffix does not change the number.
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || end == text.data()) return std::nullopt;
  while (!rest.empty() && contains("uUlL", std::string(1, rest[0]))) rest.remove_prefix(1);
  if (!rest.empty()) return std::nullopt;
  return value;
}

}  // namespace

// Recursive descent by precedence.
class Requirements::Reader {
 public:
  Reader(std::string_view text, const std::vector<Knob>& knobs) : rest_(text), knobs_(knobs) {
    advance();
  }

  // The error, or "".
  std::string read(std::vector<Step>* steps) {
    steps_ = steps;
    binary(0);
    if (problem_.empty() && !token_.empty()) problem_ = "\"" + printable(token_) + "\" is too much";
    if (problem_.empty() && steps->size() > kMostSteps) problem_ = "it is too long";
    return problem_;
  }

 private:
  void advance() {
    rest_ = trim(rest_);
    std::size_t length = 0;
    while (length < rest_.size() && in_identifier(rest_[length])) ++length;
    for (const Operator& each : kOperators) {  // longer operators come before their prefixes
      if (length == 0 && rest_.starts_with(each.text)) length = each.text.size();
    }
    token_ = rest_.substr(0, std::max<std::size_t>(length, 1));
    rest_.remove_prefix(token_.size());
    if (token_ == "and") token_ = "&&";
    if (token_ == "or") token_ = "||";
    if (token_ == "not") token_ = "!";
  }

  // Operators of this precedence level and above.
  void binary(int level) {
    if (level == kLevels) return unary();
    binary(level + 1);
    while (problem_.empty()) {
      const auto* const found = std::find_if(
          std::begin(kOperators), std::end(kOperators),
          [&](const Operator& each) { return each.level == level && each.text == token_; });
      if (found == std::end(kOperators)) return;
      advance();
      binary(level + 1);
      steps_->push_back({Step::Kind::kBinary, 0, found->apply});
    }
  }

  void unary() {
    if (++nesting_ > kMostNesting) problem_ = "it is nested too deeply";
    if (!problem_.empty()) return;
    if (token_ == "!" || token_ == "-") {
      const Operation operation = token_ == "!" ? negated : opposite;
      advance();
      unary();
      steps_->push_back({Step::Kind::kUnary, 0, operation});
    } else if (token_ == "(") {
      advance();
      binary(0);
      if (problem_.empty() && token_ != ")") problem_ = "a ) is missing";
      advance();
    } else {
      operand();
    }
    --nesting_;
  }

  void operand() {
    if (token_.empty()) {
      problem_ = "it ends where a knob or a number belongs";
      return;
    }
    if (const auto number = integer(token_)) {
      steps_->push_back({Step::Kind::kNumber, *number});
      return advance();
    }
    const auto knob = std::find_if(knobs_.begin(), knobs_.end(),
                                   [&](const Knob& each) { return each.name == token_; });
    if (knob == knobs_.end()) {
      problem_ = "\"" + printable(token_) + "\" is neither a knob nor an integer";
      return;
    }
    for (const std::string& value : knob->values) {
      if (integer(value)) continue;
      problem_ = "the knob " + knob->name + " has the value " + value + ", which is not an integer";
      return;
    }
    steps_->push_back({Step::Kind::kKnob, knob - knobs_.begin()});
    advance();
  }

  std::string_view rest_, token_;
  const std::vector<Knob>& knobs_;
  std::vector<Step>* steps_ = nullptr;
  std::string problem_;
  int nesting_ = 0;
};

Result<Requirements> Requirements::parse(std::string_view source, const std::vector<Knob>& knobs) {
  Requirements requirements;
  for (const Annotation& each : annotations(source, "@require")) {
    Requirement requirement;
    requirement.text = each.text;
    const std::string problem = Reader(requirement.text, knobs).read(&requirement.steps);
    if (!problem.empty()) {
      return fail(ErrorKind::kBadInput,
                  "line " + std::to_string(each.line) + ": `@require " + printable(each.text) +
                      "` cannot be read: " + problem,
                  "write a condition on the source's knobs, such as `// @require TILE % WARPS == "
                  "0`; a condition on dimensions is for static_assert");
    }
    requirements.all_.push_back(std::move(requirement));
  }
  if (requirements.all_.empty()) return requirements;
  for (const Knob& knob : knobs) {
    requirements.names_.push_back(knob.name);
    auto& values = requirements.values_.emplace_back();
    for (const std::string& value : knob.values) values.push_back(integer(value).value_or(0));
  }
  return requirements;
}

bool Requirements::hold(const std::vector<std::uint16_t>& at) const {
  if (all_.empty()) return true;
  std::vector<std::int64_t> values;
  for (std::size_t k = 0; k < values_.size(); ++k) values.push_back(values_[k].at(at.at(k)));
  return std::all_of(all_.begin(), all_.end(),
                     [&](const Requirement& each) { return holds(each, values); });
}

std::string Requirements::broken(const KnobValues& values) const {
  std::vector<std::int64_t> numbers;
  std::vector<bool> known;
  for (const std::string& name : names_) {
    const auto found = values.find(name);
    const auto number = found == values.end() ? std::nullopt : integer(found->second);
    numbers.push_back(number.value_or(0));
    known.push_back(number.has_value());
  }
  for (const Requirement& each : all_) {
    const bool complete = std::all_of(each.steps.begin(), each.steps.end(), [&](const Step& step) {
      return step.kind != Step::Kind::kKnob || known[static_cast<std::size_t>(step.number)];
    });
    if (!complete || !holds(each, numbers)) return each.text;
  }
  return "";
}

bool Requirements::holds(const Requirement& requirement, const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> stack;
  const auto pop = [&] {
    const std::int64_t top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Step& step : requirement.steps) {
    std::optional<std::int64_t> result = step.number;
    if (step.kind == Step::Kind::kKnob) {
      result = values[static_cast<std::size_t>(step.number)];
    } else if (step.operation != nullptr) {
      const std::int64_t b = step.kind == Step::Kind::kBinary ? pop() : 0;
      result = step.operation(pop(), b);
    }
    if (!result) return false;
    stack.push_back(*result);
  }
  return stack.back() != 0;
}

}  // namespace kernelpro
