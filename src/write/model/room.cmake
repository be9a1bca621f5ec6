# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} model_prices src/write/model/prices.toml)
