# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(kernelpro_propose exchange_prompt prompts/exchange.md)
