// SPDX-License-Identifier: Apache-2.0
// Token prices, from a table that the user can edit (docs/models.md). A price missing from the
// table is unknown, never guessed. Plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "write/model/chat.h"

namespace kernelpro {

// US dollars per million tokens.
struct Price {
  std::string prefix;  // of ModelSpec::name
  double input = 0;
  double output = 0;
  double cache_read = 0;
  double cache_write = 0;
  std::string as_of;  // date of the price, as in the table
};

double cost_usd(const Price& price, const Usage& usage);

class Prices {
 public:
  // Fails with kBadInput, naming `path` and the line.
  static Result<Prices> parse(std::string_view text, const std::string& path);
  // $KERNELPRO_PRICES, else kernelpro/prices.toml in $XDG_CONFIG_HOME or ~/.config, else the
  // embedded table. The first that exists is used whole.
  static Result<Prices> load();

  // The longest matching prefix. nullptr: unknown. Points into this object.
  const Price* find(std::string_view name) const;
  const std::vector<Price>& all() const { return prices_; }
  const std::string& source() const { return source_; }  // path, or "the embedded table"

 private:
  std::vector<Price> prices_;
  std::string source_;
};

}  // namespace kernelpro
