// SPDX-License-Identifier: Apache-2.0
#include "task/reference/module_testing.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"

namespace kernelpro {

ReferenceSettings cpu_settings() {
  ReferenceSettings settings;
  settings.target = TargetKind::kCpu;
  return settings;
}

Result<std::unique_ptr<ModuleReference>>& cpu_reference() {
  static auto* started =
      new Result<std::unique_ptr<ModuleReference>>(ModuleReference::start(cpu_settings()));
  return *started;
}

std::string module_source(const std::string& constructor, const std::string& forward,
                          const std::string& inputs, const std::string& top,
                          const std::string& parameters) {
  return "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n" + top +
         "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n" +
         (constructor.empty() ? ""
                              : "        " + replace_all(constructor, "\n", "\n        ") + "\n") +
         "    def forward(self, " + parameters + "):\n        " +
         replace_all(forward, "\n", "\n        ") + "\ndef get_inputs():\n    return [" + inputs +
         "]\ndef get_init_inputs():\n    return []\n";
}

SharedMemory::SharedMemory(std::uint64_t bytes)
    : fd_(::memfd_create("kernelpro-test", MFD_CLOEXEC)), bytes_(bytes) {
  KP_ASSERT(::ftruncate(fd_.get(), static_cast<off_t>(bytes)) == 0);
  data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  KP_ASSERT(data_ != MAP_FAILED);
}

SharedMemory::~SharedMemory() { ::munmap(data_, bytes_); }

TestSet::TestSet(const Task& task, const Case& c) {
  int index = 0;
  for (const Shaped& shaped : shaped_tensors(task, c)) {
    const bool output = shaped.tensor->role == Role::kOutput;
    const bool wide = output && is_floating(shaped.tensor->dtype);
    const std::int64_t bytes = wide ? shaped.elements * 8 : shaped.bytes;
    memory_.push_back(std::make_unique<SharedMemory>(static_cast<std::uint64_t>(bytes)));
    names_.push_back(shaped.tensor->name);
    SharedBuffer buffer;
    buffer.tensor = index++;
    buffer.expected = output;
    buffer.wide = wide;
    buffer.fd = memory_.back()->fd();
    buffer.bytes = memory_.back()->bytes();
    buffers_.push_back(buffer);
  }
}

std::pair<void*, std::uint64_t> TestSet::find(const std::string& tensor) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == tensor) return {memory_[i]->data(), memory_[i]->bytes()};
  }
  assertion_failed(("there is no tensor " + tensor).c_str(), __FILE__, __LINE__);
}

Task task_of(const ModuleDescription& description, const std::string& source) {
  Task task;
  task.name = "module";
  task.module = Module{"", source, description.note};
  Case c;
  c.name = "only";
  c.timed = true;
  c.dims = description.dims;
  for (const ModuleDescription::Item& item : description.items) {
    Tensor tensor;
    tensor.name = item.name;
    tensor.role = item.role;
    tensor.dtype = item.dtype;
    tensor.init.kind = Init::Kind::kModule;
    task.tensors.push_back(tensor);
    c.shapes.push_back(item.shape);
  }
  task.cases.push_back(std::move(c));
  return task;
}

}  // namespace kernelpro
