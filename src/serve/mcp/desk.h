// SPDX-License-Identifier: Apache-2.0
// What all clients of a server share: the tasks it may open, the runs it has begun, the code that
// can be searched.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/counters.h"
#include "run/sitting.h"
#include "serve/mcp/jobs.h"
#include "task/open/open_task.h"
#include "write/knowledge/knowledge_base.h"

namespace kernelpro {

struct DeskSettings {
  std::vector<std::string> roots = {"."};  // tasks, or folders with tasks below
  std::string runs = "runs";               // where run folders go
  std::string target = "auto";             // where nobody says: auto | cpu | cuda
  std::string gpu;
  std::string python;
  std::string record;                     // of what came of findings; "" = none
  std::string facts;                      // the user's memory (run/store/fact_file.h); "" = none
  std::vector<std::string> include_dirs;  // of header libraries
  double timeout_s = 30;
  CounterSet counters = CounterSet::kTriage;
};

struct TaskEntry {
  std::string name;     // what a client calls it: the path below its root, unless that is taken
  std::string path;     // absolute
  std::string summary;  // one line; a fault that keeps it from being opened
};

// What a client says about the task it means.
struct TaskChoice {
  std::string task;  // name or path
  std::string target;
  std::optional<Precision> precision;
};

class Desk {
 public:
  explicit Desk(DeskSettings settings);

  // Looked for anew each time: a task may be made meanwhile.
  std::vector<TaskEntry> tasks() const;
  // The path of a task within the roots. Fails with kBadInput, naming what there is.
  Result<std::string> find_task(const std::string& name) const;
  // The task as it is evaluated, read once. On the thread for look-ups.
  Result<const Task*> read_task(const TaskChoice& choice, TargetKind* target);

  // The run of this choice, opened when there is none. On the thread that evaluates; `ticket` hears
  // what is done.
  Result<std::shared_ptr<Sitting>> sit(const TaskChoice& choice, Ticket& ticket);
  // The run that was begun for this choice; for an empty task, the one used last. Any thread.
  Result<std::shared_ptr<Sitting>> begun(const TaskChoice& choice) const;

  // On the thread for look-ups.
  KnowledgeBase& knowledge() { return knowledge_; }

 private:
  struct Key {
    std::string path;
    std::string target;  // as chosen by the client or the server: may be "auto"
    std::optional<Precision> precision;
    auto operator<=>(const Key&) const = default;
  };
  Result<Key> key_of(const TaskChoice& choice) const;
  Result<OpenedTask> open(const Key& key, TargetKind* target) const;
  // Lets go of prepared targets, so that `next` has room.
  void make_room(const Sitting* next);

  const DeskSettings settings_;
  KnowledgeBase knowledge_;
  std::map<Key, std::pair<Task, TargetKind>> read_;  // of the thread for look-ups

  mutable std::mutex mutex_;  // guards what follows
  std::map<Key, std::shared_ptr<Sitting>> runs_;
  std::list<std::shared_ptr<Sitting>> recent_;  // used last comes first
};

}  // namespace kernelpro
