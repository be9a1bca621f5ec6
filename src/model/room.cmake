# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(kernelpro_model model_prices src/model/prices.toml)
