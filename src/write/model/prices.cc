// SPDX-License-Identifier: Apache-2.0
#include "write/model/prices.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/files.h"
#include "base/text.h"
#include "base/toml.h"
#include "embedded/model_prices.h"

namespace kernelpro {
namespace {

constexpr const char* kHow =
    "give each [[price]] a model (as in --model, or its beginning) and input, output, cache_read "
    "and cache_write in US dollars for a million tokens";
constexpr double kMost = 1e6;  // dollars per million tokens

Result<double> read_price(const toml::table& row, const char* name, const std::string& where,
                          std::optional<double> otherwise) {
  const toml::node* node = row.get(name);
  if (node == nullptr && otherwise) return *otherwise;
  const std::optional<double> value = node != nullptr ? node->value<double>() : std::nullopt;
  if (!value || !std::isfinite(*value) || *value < 0 || *value > kMost) {
    return fail(ErrorKind::kBadInput, where + ": " + name + " is not a price", kHow);
  }
  return *value;
}

Result<Price> read_row(const toml::table& row, const std::string& where) {
  Price price;
  price.prefix = row["model"].value_or(std::string());
  if (price.prefix.empty()) {
    return fail(ErrorKind::kBadInput, where + ": a price without a model", kHow);
  }
  price.as_of = row["as_of"].value_or(std::string());
  for (const auto& [key, node] : row) {
    static constexpr std::string_view known[] = {"model",      "input",       "output",
                                                 "cache_read", "cache_write", "as_of"};
    if (std::find(std::begin(known), std::end(known), key.str()) == std::end(known)) {
      return fail(ErrorKind::kBadInput,
                  where + ": \"" + printable(key.str()) + "\" is not part of a price", kHow);
    }
  }
  KP_ASSIGN(const auto input, read_price(row, "input", where, std::nullopt));
  KP_ASSIGN(const auto output, read_price(row, "output", where, std::nullopt));
  // Without cache prices in the table, cached tokens cost as much as others.
  KP_ASSIGN(const auto read, read_price(row, "cache_read", where, input));
  KP_ASSIGN(const auto write, read_price(row, "cache_write", where, input));
  price.input = input;
  price.output = output;
  price.cache_read = read;
  price.cache_write = write;
  return price;
}

}  // namespace

double cost_usd(const Price& price, const Usage& usage) {
  return 1e-6 * (price.input * static_cast<double>(usage.input) +
                 price.output * static_cast<double>(usage.output) +
                 price.cache_read * static_cast<double>(usage.cache_read) +
                 price.cache_write * static_cast<double>(usage.cache_written));
}

Result<Prices> Prices::parse(std::string_view text, const std::string& path) {
  Prices prices;
  prices.source_ = path;
  const toml::parse_result result = toml::parse(text, path);
  if (!result) {
    const toml::parse_error& error = result.error();
    return fail(ErrorKind::kBadInput,
                path + ":" + std::to_string(error.source().begin.line) + ": " +
                    printable(error.description()),
                "correct the TOML there");
  }
  const toml::table& table = result.table();
  const toml::array* rows = table["price"].as_array();
  if (rows == nullptr && !table.empty()) {
    return fail(ErrorKind::kBadInput, path + ": there is no [[price]]", kHow);
  }
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    const toml::table* row = rows->get(i)->as_table();
    const std::string where = path + ":" + std::to_string(rows->get(i)->source().begin.line);
    if (row == nullptr) return fail(ErrorKind::kBadInput, where + ": not a [[price]]", kHow);
    KP_ASSIGN(Price price, read_row(*row, where));
    prices.prices_.push_back(std::move(price));
  }
  return prices;
}

Result<Prices> Prices::load() {
  std::string path = config_file("prices.toml");
  const char* named = std::getenv("KERNELPRO_PRICES");
  if (named != nullptr && *named != '\0') {
    path = named;
  } else if (path.empty() || !exists(path)) {
    return parse(embedded::model_prices, "the embedded table");
  }
  KP_ASSIGN(const std::string text, read_file(path, 1 << 20));
  return parse(text, path);
}

const Price* Prices::find(std::string_view name) const {
  const Price* best = nullptr;
  for (const Price& price : prices_) {
    const bool fits = name.substr(0, price.prefix.size()) == price.prefix;
    if (fits && (best == nullptr || price.prefix.size() > best->prefix.size())) best = &price;
  }
  return best;
}

}  // namespace kernelpro
