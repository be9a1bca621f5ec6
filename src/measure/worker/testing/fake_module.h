// SPDX-License-Identifier: Apache-2.0
// A PyTorch candidate in host form, for fake_worker.cc: y = 2x on its stage, by a file whose name
// has a number, the microseconds that a call takes, and perhaps what it does: "item 20000",
// "item 20000 works_ahead".
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/process/gate.h"
#include "core/plan/protocol.h"
#include "measure/worker/cuda/message.h"

namespace kernelpro::fake {

// A note by which tests know the process.
inline std::string process() { return "process " + std::to_string(::getpid()); }

class HostForm {
 public:
  explicit HostForm(std::size_t elements) : elements_(elements) {}
  ~HostForm() {
    for (std::thread& thread : late_) thread.join();
  }
  HostForm(const HostForm&) = delete;
  HostForm& operator=(const HostForm&) = delete;

  // The answer; nullopt: no host form has been loaded.
  std::optional<Json> handle(WorkerCommand& command) {
    const std::string verb = command.verb();
    if (verb == "gate" && command.fds.size() == 1) {
      if (auto gate = Gate::map(command.fds[0].get())) gate_ = std::move(*gate);
    }
    if (verb == "open") {
      for (const Json& each : JsonReader(command.json).array("cases")) {
        layout_ = layout_from_json(dump_json(JsonReader(each).object("layout")));
      }
    }
    if (verb == "memory") map(command);
    if (verb == "load") {
      Subject subject;
      char does[64] = "";
      const std::string path = command.text("module"), name = path.substr(path.rfind('/') + 1);
      if (std::sscanf(name.c_str(), "item %d %63s", &subject.takes_us, does) >= 1) {
        subject.does = does;
        subjects_[command.text("subject")] = subject;
      }
    }
    if (verb == "call" && subjects_.empty()) return std::nullopt;
    Json answer = {{"notes", Json::array({process()})}};
    const std::uint64_t turn = command.natural("turn");
    if (verb == "ping") {
      begin(turn);
      answer["us"] = 0.1;
      gate_.give(Sign::kAnswer, turn);
    }
    if (verb == "call") call(subjects_[command.text("subject")], turn);
    return answer;
  }

 private:
  struct Subject {
    int takes_us = 0;
    std::string does;
  };

  bool begin(std::uint64_t turn) {
    gate_.give(Sign::kReady, turn);
    return gate_.await(Sign::kOrder, turn, 600);
  }

  void call(const Subject& subject, std::uint64_t turn) {
    if (subject.does == "tunes_itself" && !std::exchange(tuned_, true)) {
      begin(turn);
      ::sleep(5);
      compute();
      gate_.give(Sign::kAnswer, turn);
      return;
    }
    const auto work = [this, us = subject.takes_us] {
      ::usleep(static_cast<useconds_t>(us));
      compute();
    };
    if (subject.does == "works_ahead") {  // on what the stage holds before the order
      work();
      begin(turn);
    } else {
      begin(turn);
      if (subject.does == "works_later") {  // after its answer
        late_.emplace_back(work);
      } else if (subject.does == "keeps_results") {
        keep_results(work);
      } else {
        work();
      }
    }
    if (subject.does == "changes_an_input") memory_[0][3] += 1;
    if (subject.does != "gives_no_sign") gate_.give(Sign::kAnswer, turn);
  }

  // By their contents.
  template <class Work>
  void keep_results(const Work& work) {
    const std::array<float, 4> look = {memory_[0][0], memory_[0][1], memory_[0][2], memory_[0][3]};
    std::vector<float>& kept = kept_[look];
    if (kept.empty()) {
      work();
      kept.assign(memory_[1], memory_[1] + elements_);
    }
    for (std::size_t i = 0; i < elements_; ++i) memory_[1][i] = kept[i];
  }

  void map(const WorkerCommand& command) {
    std::size_t at = 0;
    for (const Json& slot : JsonReader(command.json).array("slots")) {
      const auto place = slot.get<std::size_t>();
      if (!layout_ || place >= layout_->slots.size() || at >= command.fds.size()) return;
      const AddressLayout::Slot& where = layout_->slots[place];
      void* memory = ::mmap(nullptr, where.mapping_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                            command.fds[at++].get(), 0);
      if (memory == MAP_FAILED) continue;
      memory_[place] =
          reinterpret_cast<float*>(static_cast<char*>(memory) + (where.address - where.mapping));
    }
  }

  void compute() {
    const float* x = memory_[0];
    float* y = memory_[1];
    if (x == nullptr || y == nullptr) return;
    for (std::size_t i = 0; i < elements_; ++i) y[i] = 2 * x[i];
  }

  std::size_t elements_;
  bool tuned_ = false;
  std::optional<AddressLayout> layout_;
  Gate gate_;
  std::map<std::size_t, float*> memory_;  // by slot
  std::map<std::string, Subject> subjects_;
  std::map<std::array<float, 4>, std::vector<float>> kept_;
  std::vector<std::thread> late_;
};

}  // namespace kernelpro::fake
