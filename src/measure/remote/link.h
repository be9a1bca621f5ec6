// SPDX-License-Identifier: Apache-2.0
// A running command whose standard input and output carry frames: the connection to a station
// elsewhere. One thread sends and one receives.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "base/process/channel.h"
#include "measure/remote/address.h"

namespace kernelpro {

class Link {
 public:
  // Starts the address's command, with one more word for the session.
  static Result<std::unique_ptr<Link>> start(const StationAddress& address,
                                             const std::string& session);
  ~Link();  // ends the command
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // False: the connection is gone, and `receive` will notice. Any thread, one at a time.
  bool send(const std::string& bytes);
  // Forever, or up to `timeout_s`.
  ChannelState receive(std::string* bytes, double timeout_s = -1);
  // Ends the connection, from any thread: `receive` returns.
  void cut();
  // What the command has printed to its standard error, its last line; "" if nothing.
  std::string complaint() const;

 private:
  Link() = default;
  pid_t pid_ = -1;
  Channel channel_;
  Fd errors_;
};

}  // namespace kernelpro
