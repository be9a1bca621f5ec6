// SPDX-License-Identifier: Apache-2.0
#include "task/reference/describe.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "core/candidate/knobs.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostName = 56;  // leaves room below the limit of 64 for a number

// "conv.weight" -> "conv_weight", "out[0]" -> "out_0", "state['h']" -> "state_h".
std::string identifier(const std::string& label) {
  std::string name;
  for (const char c : label) {
    const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (word) name += c;
    if (!word && !name.empty() && name.back() != '_') name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  // The end of a long path is more informative than its start.
  if (name.size() > kMostName) name = name.substr(name.size() - kMostName);
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "t" + name;
  return name_problem(name).empty() ? name : name + "_";
}

std::string unique(const std::string& label, std::set<std::string>* taken) {
  const std::string plain = identifier(label);
  std::string name = plain;
  for (int i = 2; !taken->insert(name).second || !name_problem(name).empty(); ++i) {
    name = plain + "_" + std::to_string(i);
  }
  return name;
}

tl::unexpected<Error> unreadable() {
  return fail(ErrorKind::kInternal, "the module's process gave a description that cannot be read",
              "report this with the file");
}

std::optional<ModuleDescription::Item> read_item(const Json& json) {
  const JsonReader r(json);
  ModuleDescription::Item item;
  item.label = printable(r.text("label"));
  const auto role = role_from_name(r.text("role"));
  const auto dtype = dtype_from_name(r.text("dtype"));
  if (!role || !dtype) return std::nullopt;
  item.role = *role;
  item.dtype = *dtype;
  item.buffer = r.flag("buffer");
  for (const Json& size : r.array("shape")) {
    if (!size.is_number_integer()) return std::nullopt;
    item.shape.push_back(size.get<std::int64_t>());
  }
  return item;
}

}  // namespace

Result<ModuleDescription> description_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root) return unreadable();
  const JsonReader r(*root);
  ModuleDescription description;
  std::set<std::string> taken;
  for (const auto& [name, value] : r.object("dims").items()) {
    if (!value.is_number_integer()) return unreadable();
    description.dims[name] = value.get<std::int64_t>();
    taken.insert(name);
    taken.insert(name + "_");  // where task.h renames it
  }
  for (const Json& each : r.array("items")) {
    std::optional<ModuleDescription::Item> item = read_item(each);
    if (!item) return unreadable();
    item->name = unique(item->label, &taken);
    description.items.push_back(std::move(*item));
  }
  for (const auto& [label, value] : r.object("constants").items()) {
    if (!value.is_string()) return unreadable();
    description.constants[unique(label, &taken)] = value.get<std::string>();
  }
  description.training = r.flag("training");
  description.intermediate_bytes = r.real("intermediate_bytes");
  description.flops = r.real("flops");
  description.matmul_flops = r.real("matmul_flops");
  description.torch_version = printable(r.text("torch_version"));
  description.note = printable(r.text("note"));
  return description;
}

Json attach_message(const Task& task, const Case& c, int set,
                    const std::vector<SharedBuffer>& buffers, std::vector<int>* fds) {
  const std::vector<Shaped> shaped = shaped_tensors(task, c);
  Json maps = Json::array();
  Json places = Json::array();
  for (const SharedBuffer& buffer : buffers) {
    const auto known = std::find(fds->begin(), fds->end(), buffer.fd);
    const auto map = known - fds->begin();
    if (known == fds->end()) {
      fds->push_back(buffer.fd);
      maps.push_back(buffer.bytes);
    }
    const Shaped& tensor = shaped[static_cast<std::size_t>(buffer.tensor)];
    const bool wide = buffer.wide && is_floating(tensor.tensor->dtype);
    places.push_back({{"tensor", buffer.tensor},
                      {"expected", buffer.expected},
                      {"dtype", wide ? "fp64" : dtype_name(tensor.tensor->dtype)},
                      {"shape", tensor.shape},
                      {"map", map},
                      {"offset", buffer.offset}});
  }
  return {{"do", "attach"},
          {"source", task.module->source},
          {"path", task.module->path},
          {"dims", c.dims},
          {"set", set},
          {"precision", precision_name(task.precision)},
          {"tensors", task.tensors.size()},
          {"maps", maps},
          {"buffers", places}};
}

}  // namespace kernelpro
