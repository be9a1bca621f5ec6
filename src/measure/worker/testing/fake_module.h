// SPDX-License-Identifier: Apache-2.0
// A PyTorch candidate in host form, for fake_worker.cc: y = 2x on the judge's buffers, by a file
// whose name has three numbers, as in "item 20000 5000 0": the microseconds that a call takes,
// those that its process claims, and those that it says Python needs to submit a call.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/protocol.h"
#include "measure/worker/cuda/message.h"

namespace kernelpro::fake {

// A note by which tests know the process.
inline std::string process() { return "process " + std::to_string(::getpid()); }

class HostForm {
 public:
  explicit HostForm(std::size_t elements) : elements_(elements) {}

  // The answer; nullopt: no host form has been loaded.
  std::optional<Json> handle(WorkerCommand& command) {
    const std::string verb = command.verb();
    const JsonReader r(command.json);
    if (verb == "open") {
      for (const Json& each : r.array("cases")) {
        layout_ = layout_from_json(dump_json(JsonReader(each).object("layout")));
      }
    }
    if (verb == "memory") map(command);
    if (verb == "load") {
      Times times;
      const std::string path = command.text("module"), name = path.substr(path.rfind('/') + 1);
      if (std::sscanf(name.c_str(), "item %d %d %d", &times.takes, &times.claims, &times.submits) ==
          3) {
        subjects_[command.text("subject")] = times;
      }
    }
    if (subjects_.empty() && verb == "run") return std::nullopt;
    Json answer = {{"notes", Json::array({process()})}};
    if (verb == "run") {
      for (const Json& step : r.array("steps")) compute(step["set"].get<int>());
    }
    if (verb == "time") answer["times"] = timed(r);
    if (verb == "loop" && !command.text("subject").empty()) {
      const Times& times = subjects_[command.text("subject")];
      for (const Json& set : r.array("sets")) {
        compute(set.get<int>());
        ::usleep(static_cast<useconds_t>(times.takes));
      }
      answer["submitted_us"] = times.submits;
    }
    return answer;
  }

 private:
  struct Times {
    int takes = 0, claims = 0, submits = 0;
  };

  Json timed(const JsonReader& r) {
    Json all = Json::array();
    for (const Json& step : r.array("steps")) {
      const int claims = subjects_[JsonReader(step).text("subject")].claims;
      compute(step["set"].get<int>());
      ::usleep(static_cast<useconds_t>(claims));
      all.push_back(claims);
    }
    return all;
  }

  void map(const WorkerCommand& command) {
    const int set = static_cast<int>(command.integer("set"));
    std::size_t at = 0;
    for (const Json& slot : JsonReader(command.json).array("slots")) {
      const auto place = slot.get<std::size_t>();
      if (!layout_ || place >= layout_->slots.size() || at >= command.fds.size()) return;
      const AddressLayout::Slot& where = layout_->slots[place];
      void* memory = ::mmap(nullptr, where.mapping_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                            command.fds[at++].get(), 0);
      if (memory == MAP_FAILED) continue;
      memory_[{set, place}] =
          reinterpret_cast<float*>(static_cast<char*>(memory) + (where.address - where.mapping));
    }
  }

  void compute(int set) {
    const float* x = memory_[{set, 0}];
    float* y = memory_[{set, 1}];
    if (x == nullptr || y == nullptr) return;
    for (std::size_t i = 0; i < elements_; ++i) y[i] = 2 * x[i];
  }

  std::size_t elements_;
  std::optional<AddressLayout> layout_;
  std::map<std::pair<int, std::size_t>, float*> memory_;
  std::map<std::string, Times> subjects_;
};

}  // namespace kernelpro::fake
