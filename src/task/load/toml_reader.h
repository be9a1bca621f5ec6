// SPDX-License-Identifier: Apache-2.0
// Reads the values of TOML tables, checked; every error begins with path:line:column. For .cc files
// only, as base/toml.h is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/toml.h"

namespace kernelpro {

class TomlReader {
 public:
  using Keys = std::vector<std::string_view>;

  // `path`, which must outlive the reader, is only used in messages.
  explicit TomlReader(const std::string& path) : path_(path) {}

  tl::unexpected<Error> wrong(const toml::source_region& where, const std::string& what,
                              std::string next) const;
  tl::unexpected<Error> wrong(const toml::node& node, const std::string& what,
                              std::string next) const;
  tl::unexpected<Error> wrong_type(const toml::node& node, std::string_view key,
                                   const std::string& wanted) const;

  // Refuses other keys, and names the one that was probably meant.
  Result<void> known_keys(const toml::table& table, const std::string& what,
                          const Keys& keys) const;

  // Required nodes; the readers below leave `out` unchanged if an optional key is absent.
  Result<const toml::node*> require(const toml::table& table, std::string_view key,
                                    const std::string& what) const;
  Result<void> read_string(const toml::table& table, std::string_view key, std::string* out) const;
  Result<void> read_flag(const toml::table& table, std::string_view key, bool* out) const;
  Result<void> read_number(const toml::table& table, std::string_view key, double* out) const;
  // An expression, as a string or an integer.
  Result<void> read_expression(const toml::node& node, std::string_view key,
                               std::string* out) const;

 protected:
  const std::string& path_;
};

}  // namespace kernelpro
