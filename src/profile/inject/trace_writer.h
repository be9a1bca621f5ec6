// SPDX-License-Identifier: Apache-2.0
// Writes the records of trace_format.h to one file per process. Bytes are gathered in a batch and
// handed to the system at once, so that what was committed outlives the process, however it ends.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "profile/inject/trace_format.h"

namespace kernelpro::tracer {

class TraceWriter {
 public:
  // Creates FOLDER/<pid>-<time>.kptrace. After `limit` bytes records are counted as dropped.
  TraceWriter(const std::string& folder, std::uint64_t limit);

  // Records between the making of a batch and its end are written together. One batch at a time:
  // a second thread waits.
  class Batch {
   public:
    explicit Batch(TraceWriter* writer) : writer_(writer), lock_(writer->mutex_) {}
    ~Batch() { writer_->commit(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    // Its number in the file; 0 for a null pointer.
    std::uint32_t name(const char* text);
    template <class Payload>
    void add(trace_format::Kind kind, const Payload& payload) {
      append(kind, &payload, sizeof payload, {});
    }
    void note(std::string_view text);
    void dropped(std::uint64_t records) { writer_->dropped_ += records; }

   private:
    void append(trace_format::Kind kind, const void* payload, std::size_t bytes,
                std::string_view more);
    TraceWriter* writer_;
    std::lock_guard<std::mutex> lock_;
  };

  // Writes the end record; later batches write nothing.
  void close();
  // In a forked child: the file is the parent's.
  void forget() { open_.store(false); }

 private:
  void commit();

  std::mutex mutex_;
  std::atomic<bool> open_{false};
  int fd_ = -1;
  std::uint64_t limit_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t dropped_ = 0;
  std::string pending_;
  std::unordered_map<std::string, std::uint32_t> names_;
};

}  // namespace kernelpro::tracer
