// SPDX-License-Identifier: Apache-2.0
// task.toml to Task. Every message begins with path:line:column.
#include <algorithm>
#include <cctype>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/task/expression.h"
#include "task/load/limits.h"
#include "task/load/loader.h"
#include "task/load/toml_reader.h"

namespace kernelpro {

namespace {

// Names that become parts of file names and of the store.
bool is_label(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '_' || c == '-' || c == '.';
         });
}

// The numbers of an init, in the order of Init::a and Init::b.
struct InitKeys {
  Init::Kind kind;
  bool required;
  TomlReader::Keys keys;
};

const InitKeys& keys_of(Init::Kind kind) {
  using Kind = Init::Kind;
  static const InitKeys rows[] = {{Kind::kUniform, true, {"low", "high"}},
                                  {Kind::kNormal, false, {"mean", "std"}},
                                  {Kind::kIntegers, true, {"low", "high"}},
                                  {Kind::kBernoulli, true, {"p"}},
                                  {Kind::kConstant, true, {"value"}}};
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [&](const InitKeys& each) { return each.kind == kind; });
  KP_ASSERT(row != std::end(rows));
  return *row;
}

class TaskParser : TomlReader {
 public:
  TaskParser(const toml::table& root, const std::string& path) : TomlReader(path), root_(root) {}

  Result<Task> parse() {
    KP_TRY(known_keys(root_, "task.toml", {"task", "tensor", "case"}));
    KP_TRY(read_heading());
    KP_TRY(for_each_table("tensor", kMaxTensors, [&](const auto& t) { return read_tensor(t); }));
    KP_TRY(for_each_table("case", kMaxCases, [&](const auto& t) { return read_case(t); }));
    KP_TRY(check_roles());
    KP_TRY(check_targets());
    return std::move(task_);
  }

 private:
  using Done = Result<void>;

  template <class Read>
  Done for_each_table(std::string_view key, std::size_t most, Read read) const {
    const toml::node* node = root_.get(key);
    const std::string header = "[[" + std::string(key) + "]]";
    if (node == nullptr) {
      return fail(ErrorKind::kBadInput, path_ + ": the task has no " + header,
                  "add at least one " + header + " section; see docs/task-format.md");
    }
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty() || !array->is_homogeneous(toml::node_type::table)) {
      return wrong(*node, "\"" + std::string(key) + "\" must be written as sections " + header,
                   "give each its own " + header + " line");
    }
    if (array->size() > most) {
      return wrong(*node, "there are more than " + std::to_string(most) + " " + header,
                   "merge some");
    }
    for (const toml::node& element : *array) KP_TRY(read(*element.as_table()));
    return {};
  }

  Done read_label(const toml::table& table, const std::string& what, std::string* out) const {
    KP_ASSIGN(const auto node, require(table, "name", what));
    KP_TRY(read_string(table, "name", out));
    if (is_label(*out)) return {};
    return wrong(*node, what + " has the name \"" + *out + "\"",
                 "use letters, digits, _ - and ., at most " + std::to_string(kMaxNameBytes));
  }

  Done read_heading() {
    const toml::node* node = root_.get("task");
    if (node == nullptr) {
      return fail(ErrorKind::kBadInput, path_ + ": the task has no [task] section",
                  "begin the file with [task] and name = \"...\"");
    }
    const toml::table* table = node->as_table();
    if (table == nullptr) return wrong(*node, "\"task\" must be a section", "write [task]");
    KP_TRY(known_keys(*table, "[task]", {"name", "summary", "flops", "matmul_flops", "workspace"}));
    KP_TRY(read_label(*table, "[task]", &task_.name));
    KP_TRY(read_string(*table, "summary", &task_.summary));
    task_.summary = printable(task_.summary);
    task_.folder = dirname(absolute(path_));
    for (const auto& [key, out] :
         {std::pair{"flops", &task_.flops}, std::pair{"matmul_flops", &task_.matmul_flops},
          std::pair{"workspace", &task_.workspace}}) {
      const toml::node* expression = table->get(key);
      if (expression == nullptr) continue;
      KP_TRY(read_expression(*expression, key, out));
      expressions_.push_back({key, out, expression});
    }
    return {};
  }

  Done read_tensor(const toml::table& table) {
    KP_TRY(
        known_keys(table, "[[tensor]]", {"name", "role", "dtype", "shape", "init", "tolerance"}));
    Tensor tensor;
    KP_ASSIGN(const auto name, require(table, "name", "[[tensor]]"));
    KP_TRY(read_string(table, "name", &tensor.name));
    if (const std::string problem = name_problem(tensor.name); !problem.empty()) {
      return wrong(*name, "a tensor cannot have the name \"" + tensor.name + "\": " + problem,
                   "choose another name; it becomes a member of Args");
    }
    if (!names_.insert(tensor.name).second) {
      return wrong(*name, "the tensor " + tensor.name + " is declared twice", "rename one of them");
    }
    KP_TRY(read_role(table, &tensor));
    KP_TRY(read_dtype(table, &tensor));
    KP_TRY(read_shape(table, &tensor));
    KP_TRY(read_init(table, &tensor));
    KP_TRY(read_tolerance(table, &tensor));
    task_.tensors.push_back(std::move(tensor));
    return {};
  }

  Done read_role(const toml::table& table, Tensor* tensor) const {
    KP_ASSIGN(const auto node, require(table, "role", "the tensor " + tensor->name));
    std::string text;
    KP_TRY(read_string(table, "role", &text));
    const auto role = role_from_name(text);
    if (!role)
      return wrong(*node, "unknown role \"" + text + "\"", "use input, parameter or output");
    tensor->role = *role;
    return {};
  }

  Done read_dtype(const toml::table& table, Tensor* tensor) const {
    KP_ASSIGN(const auto node, require(table, "dtype", "the tensor " + tensor->name));
    std::string text;
    KP_TRY(read_string(table, "dtype", &text));
    const auto dtype = dtype_from_name(text);
    if (!dtype)
      return wrong(*node, "unknown dtype \"" + text + "\"", "use one of " + dtype_names());
    tensor->dtype = *dtype;
    return {};
  }

  Done read_shape(const toml::table& table, Tensor* tensor) {
    KP_ASSIGN(const auto node, require(table, "shape", "the tensor " + tensor->name));
    const toml::array* array = node->as_array();
    if (array == nullptr) {
      return wrong_type(*node, "shape", "a list such as [\"ROWS\", \"COLS\"]; [] is a scalar");
    }
    if (array->size() > kMaxRank) {
      return wrong(*node, "a shape has more than " + std::to_string(kMaxRank) + " dimensions",
                   "merge some of them");
    }
    for (const toml::node& element : *array) {
      KP_TRY(read_expression(element, "a dimension", &tensor->shape.emplace_back()));
    }
    shapes_.push_back(array);
    return {};
  }

  Done read_tolerance(const toml::table& table, Tensor* tensor) const {
    const toml::node* node = table.get("tolerance");
    if (node == nullptr) return {};
    KP_TRY(read_number(table, "tolerance", &tensor->tolerance));
    if (tensor->role != Role::kOutput || !is_floating(tensor->dtype)) {
      return wrong(*node, "only floating-point outputs have a tolerance",
                   "remove it; integers and bools are compared exactly");
    }
    if (tensor->tolerance <= 0 || tensor->tolerance >= 1) {
      return wrong(*node, "tolerance must lie between 0 and 1",
                   "give the allowed error relative to the output, such as 1e-4");
    }
    return {};
  }

  Done read_init(const toml::table& table, Tensor* tensor) const {
    const toml::node* node = table.get("init");
    if (node == nullptr) return default_init(table, tensor);
    if (tensor->role == Role::kOutput) {
      return wrong(*node, "the output " + tensor->name + " has an init", "remove it");
    }
    const toml::table* init = node->as_table();
    if (init == nullptr) return wrong_type(*node, "init", "a table such as { kind = \"normal\" }");
    KP_ASSIGN(const auto kind_node, require(*init, "kind", "init"));
    std::string text;
    KP_TRY(read_string(*init, "kind", &text));
    const auto kind = init_from_name(text);
    if (!kind || *kind == Init::Kind::kModule) {
      return wrong(*kind_node, "unknown kind of init \"" + text + "\"",
                   "use uniform, normal, integers, bernoulli or constant");
    }
    tensor->init.kind = *kind;
    KP_TRY(read_init_numbers(*init, &tensor->init));
    const std::string problem = init_problem(*tensor);
    if (!problem.empty())
      return wrong(*node, "init of " + tensor->name + ": " + problem,
                   "change the numbers, the kind or the dtype");
    return {};
  }

  Done default_init(const toml::table& table, Tensor* tensor) const {
    if (tensor->role == Role::kOutput) return {};
    if (tensor->dtype == DType::kBool) {
      tensor->init = {Init::Kind::kBernoulli, 0.5, 0};
    } else if (!is_floating(tensor->dtype)) {
      return wrong(table, "the integer tensor " + tensor->name + " has no init",
                   "give its values: init = { kind = \"integers\", low = 0, high = 9 }");
    }
    return {};
  }

  Done read_init_numbers(const toml::table& table, Init* init) const {
    const InitKeys& row = keys_of(init->kind);
    const std::string what = "init of kind " + std::string(init_name(init->kind));
    Keys known = row.keys;
    known.push_back("kind");
    KP_TRY(known_keys(table, what, known));
    double* const numbers[] = {&init->a, &init->b};
    for (std::size_t i = 0; i < row.keys.size(); ++i) {
      if (row.required) KP_TRY(require(table, row.keys[i], what));
      KP_TRY(read_number(table, row.keys[i], numbers[i]));
    }
    if (row.keys.size() == 1) init->b = 0;
    return {};
  }

  Done read_case(const toml::table& table) {
    KP_TRY(known_keys(table, "[[case]]", {"name", "dims", "timed", "held_out", "targets"}));
    Case c;
    KP_TRY(read_label(table, "[[case]]", &c.name));
    for (const auto* cases : {&task_.cases, &task_.held_out}) {
      for (const Case& other : *cases) {
        if (other.name != c.name) continue;
        return wrong(*table.get("name"), "the case " + c.name + " is declared twice",
                     "rename one of them");
      }
    }
    bool held_out = false;
    KP_TRY(read_flag(table, "held_out", &held_out));
    c.timed = held_out;
    KP_TRY(read_flag(table, "timed", &c.timed));
    if (held_out && !c.timed) {
      return wrong(*table.get("timed"), "the held-out case " + c.name + " is not timed",
                   "leave timed out: held-out cases are timed at the end");
    }
    KP_TRY(read_dims(table, &c));
    KP_TRY(read_targets(table, &c));
    KP_TRY(check_shapes(c));
    if (first_.empty()) first_ = {c};
    (held_out ? task_.held_out : task_.cases).push_back(std::move(c));
    return {};
  }

  Done read_dims(const toml::table& table, Case* c) const {
    const toml::node* node = table.get("dims");
    const toml::table* dims = node == nullptr ? nullptr : node->as_table();
    if (node != nullptr && dims == nullptr) {
      return wrong_type(*node, "dims", "a table such as { ROWS = 33, COLS = 1024 }");
    }
    if (dims != nullptr) {
      for (const auto& [key, value] : *dims) KP_TRY(read_dim(key, value, c));
    }
    if (first_.empty()) return {};
    const Case& first = first_.front();
    for (const auto& [name, value] : first.dims) {
      if (c->dims.contains(name)) continue;
      return wrong(table,
                   "the case " + c->name + " does not give " + name + ", which the case " +
                       first.name + " gives",
                   "give every case the same dimensions");
    }
    for (const auto& [name, value] : c->dims) {
      if (first.dims.contains(name)) continue;
      return wrong(
          *node,
          "the case " + c->name + " gives " + name + ", which the case " + first.name + " does not",
          "give every case the same dimensions");
    }
    return {};
  }

  Done read_dim(const toml::key& key, const toml::node& value, Case* c) const {
    const std::string name(key.str());
    if (std::string problem = name_problem(name); !problem.empty() || names_.contains(name)) {
      if (problem.empty()) problem = "a tensor has it already";
      return wrong(key.source(), "a dimension cannot have the name \"" + name + "\": " + problem,
                   "choose another name; it becomes a constant in task.h");
    }
    if (!value.is_integer()) return wrong_type(value, name, "an integer");
    const std::int64_t size = **value.as_integer();
    if (size < 1) {
      return wrong(value, name + " is " + std::to_string(size), "dimensions are at least 1");
    }
    c->dims[name] = size;
    return {};
  }

  Done read_targets(const toml::table& table, Case* c) const {
    const toml::node* node = table.get("targets");
    if (node == nullptr) return {};
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty()) {
      return wrong_type(*node, "targets", "a list such as [\"cpu\", \"cuda\"]; without it: all");
    }
    for (const toml::node& element : *array) {
      const auto* text = element.as_string();
      const auto target = text == nullptr ? std::nullopt : target_from_name(**text);
      if (!target) {
        return wrong(element, "unknown target" + (text ? " \"" + **text + "\"" : std::string()),
                     "use \"cpu\" or \"cuda\"");
      }
      if (std::find(c->targets.begin(), c->targets.end(), *target) != c->targets.end()) {
        return wrong(element, "the target " + **text + " is listed twice", "list it once");
      }
      c->targets.push_back(*target);
    }
    return {};
  }

  Result<std::int64_t> evaluate(const std::string& expression, const toml::node& node,
                                const Case& c) const {
    Result<std::int64_t> value = evaluate_expression(expression, c.dims);
    if (value) return value;
    return wrong(node, "in the case " + c.name + ", " + value.error().message, value.error().next);
  }

  // Checks that every expression evaluates, no tensor is empty and no size overflows.
  Done check_shapes(const Case& c) const {
    for (std::size_t i = 0; i < task_.tensors.size(); ++i) {
      const Tensor& tensor = task_.tensors[i];
      std::int64_t bytes = dtype_bytes(tensor.dtype);
      for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
        const toml::node& node = *shapes_[i]->get(d);
        KP_ASSIGN(const auto size, evaluate(tensor.shape[d], node, c));
        if (size < 1) {
          return wrong(node,
                       "in the case " + c.name + ", a dimension of " + tensor.name + " is " +
                           std::to_string(size),
                       "dimensions are at least 1");
        }
        if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > kMaxBytes) {
          return wrong(node,
                       "in the case " + c.name + ", the tensor " + tensor.name + " has more than " +
                           human_bytes(static_cast<double>(kMaxBytes)),
                       "choose smaller dimensions");
        }
      }
    }
    for (const Expression& e : expressions_) {
      KP_ASSIGN(const auto value, evaluate(*e.text, *e.node, c));
      if (value >= 0 && value <= kMaxBytes) continue;
      return wrong(*e.node, "in the case " + c.name + ", " + e.key + " is " + std::to_string(value),
                   "it must lie between 0 and 2^50");
    }
    return {};
  }

  Done check_roles() const {
    for (const Tensor& tensor : task_.tensors) {
      if (tensor.role == Role::kOutput) return {};
    }
    return fail(ErrorKind::kBadInput, path_ + ": the task has no output",
                "give at least one [[tensor]] role = \"output\"");
  }

  Done check_targets() const {
    if (task_.cases.empty()) {
      return fail(ErrorKind::kBadInput, path_ + ": every case is held out",
                  "leave held_out out of at least one case that is timed: the search needs it");
    }
    for (const TargetKind target : {TargetKind::kCpu, TargetKind::kCuda}) {
      const std::vector<const Case*> cases = cases_for(task_, target);
      const auto timed = [](const Case* c) { return c->timed; };
      const std::string name(target_name(target));
      const std::vector<Task> held_out = held_out_tasks(task_, target);
      if (cases.empty() && !held_out.empty()) {
        return fail(ErrorKind::kBadInput,
                    path_ + ": for the target " + name + " there is only the held-out case " +
                        held_out.front().cases.front().name,
                    "give that target a timed case that is not held out: the search needs it");
      }
      if (cases.empty() || std::any_of(cases.begin(), cases.end(), timed)) continue;
      return fail(ErrorKind::kBadInput, path_ + ": no case for the target " + name + " is timed",
                  "add timed = true to one of them, or leave " + name + " out of their targets");
    }
    return {};
  }

  struct Expression {
    std::string key;
    const std::string* text;
    const toml::node* node;
  };

  const toml::table& root_;
  Task task_;
  std::set<std::string> names_;             // of tensors
  std::vector<const toml::array*> shapes_;  // of tensors, in order
  std::vector<Case> first_;                 // the first case, held out or not
  std::vector<Expression> expressions_;
};

}  // namespace

Result<Task> parse_task(std::string_view text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const toml::source_position at = parsed.error().source().begin;
    return fail(ErrorKind::kBadInput,
                path + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
                    printable(parsed.error().description()),
                "correct the TOML there; strings need quotes, tables need [ ] around their names");
  }
  return TaskParser(parsed.table(), path).parse();
}

}  // namespace kernelpro
