// SPDX-License-Identifier: Apache-2.0
// State shared by all clients of a server: the tasks it may open, its runs, the searchable code.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evidence/counters.h"
#include "measure/remote/stations.h"
#include "run/sitting.h"
#include "serve/mcp/jobs.h"
#include "serve/mcp/runners.h"
#include "task/open/open_task.h"
#include "write/knowledge/knowledge_base.h"

namespace kernelpro {

struct DeskSettings {
  std::vector<std::string> roots = {"."};  // tasks, or folders with tasks below
  std::string runs = "runs";               // where run folders go
  std::string target = "auto";             // if the client names none: auto | cpu | cuda
  std::string gpu;
  std::vector<std::string> stations;  // where to measure (measure/remote/stations.h); none: here
  Host host;                          // of the first of them
  std::string python;
  std::string record;                     // file with the outcomes of findings; "" = none
  std::string facts;                      // the user's memory (run/store/fact_file.h); "" = none
  std::vector<std::string> include_dirs;  // of header libraries
  // The clients are the user of this machine: they may name files outside of the roots, and have
  // programs run.
  bool trusted = false;
  double timeout_s = 30;
  CounterSet counters = CounterSet::kFull;
};

struct TaskEntry {
  std::string name;     // for clients: the path below its root, unless that is taken
  std::string path;     // absolute
  std::string summary;  // one line; or the fault that keeps it from being opened
};

// A client's choice of a task.
struct TaskChoice {
  std::string task;  // name or path
  std::string target;
  std::optional<Precision> precision;
};

class Desk {
 public:
  explicit Desk(DeskSettings settings);

  // Scans the roots on every call: tasks may be added at any time.
  std::vector<TaskEntry> tasks() const;
  // The path of a task within the roots. Fails with kBadInput and lists the tasks.
  Result<std::string> find_task(const std::string& name) const;
  // The task as it is evaluated; cached. Call on the look-up thread.
  Result<const Task*> read_task(const TaskChoice& choice, TargetKind* target);

  // The run for this choice; opens one if there is none. Call on the evaluation thread; `ticket`
  // receives progress.
  Result<std::shared_ptr<Sitting>> sit(const TaskChoice& choice, Ticket& ticket);
  // The existing run for this choice, to be measured with. Call on the evaluation thread.
  Result<std::shared_ptr<Sitting>> sit_again(const TaskChoice& choice);
  // The existing run for this choice; for an empty task, the most recently used. Any thread.
  Result<std::shared_ptr<Sitting>> begun(const TaskChoice& choice) const;

  // The path of a file that a client names: within the roots, unless it is trusted.
  Result<std::string> find_file(const std::string& name) const;
  // The folder for a new task, below the first root; not made yet. `again`: clients of this server
  // made it before. Fails with kBadInput if others did.
  Result<std::string> task_folder(const std::string& name, bool* again);
  // Says so once its files are there.
  void made(const std::string& path);

  Runners& runners() { return runners_; }
  // Adds the options with which a search measures as this server does.
  void add_options(const TaskChoice& choice, std::vector<std::string>* arguments) const;
  // Releases every prepared target. Call on the evaluation thread.
  void cool();

  const DeskSettings& settings() const { return settings_; }
  // Use on the look-up thread.
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
  // Releases prepared targets to make room for `next`.
  void make_room(const Sitting* next);
  // The run, as the one used last; makes room where its target must be prepared again.
  std::shared_ptr<Sitting> at(const std::shared_ptr<Sitting>& sitting);

  const DeskSettings settings_;
  Runners runners_;
  KnowledgeBase knowledge_;
  std::map<Key, std::pair<Task, TargetKind>> read_;  // look-up thread only

  mutable std::mutex mutex_;  // guards the members below
  std::map<Key, std::shared_ptr<Sitting>> runs_;
  std::list<std::shared_ptr<Sitting>> recent_;  // most recently used first
  std::set<std::string> made_;                  // folders of tasks that clients made
};

}  // namespace kernelpro
